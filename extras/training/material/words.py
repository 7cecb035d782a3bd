"""Words by kind, in three languages where it matters."""

from __future__ import annotations


def _split(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.replace("\n", " ").split(","))


LISTS: dict[str, tuple[str, ...]] = {
    "first": _split(
        "Anna,Ben,Clara,David,Emma,Felix,Grace,Hannah,Ivan,Julia,Karim,Lena,Marco,Nina,Omar,Paula,Quentin,Rosa,Samuel,"
        "Tara,Uwe,Vera,Wei,Xenia,Yusuf,Zoe,Priya,Kofi,Ingrid,Mateo,Aiko,Sven,Leila,Tom,Chen,Nora,Eli,Fatima,Jonas,Mia"
    ),
    "last": _split(
        "Berger,Smith,Novak,Tanaka,Okafor,Silva,Keller,Rossi,Dubois,Larsen,Patel,Kim,Haddad,Moreau,Weber,Kowalski,"
        "Jensen,Costa,Fischer,Murphy,Lindgren,Garcia,Huber,Nguyen"
    ),
    "city": _split(
        "Rome,Oslo,Lisbon,Graz,Toronto,Nairobi,Madrid,Prague,Seattle,Mumbai,Bogota,Dublin,Athens,Cairo,Lima,Helsinki,"
        "Osaka,Denver,Porto,Leeds,Zurich,Accra,Hanoi,Boston,Krakow,Valencia,Riga,Austin,Bergen,Lyon,Turin,Perth,"
        "Santiago,Manila,Warsaw,Chicago,New Orleans,Cape Town,Buenos Aires,San Diego,Kuala Lumpur,Salt Lake City"
    ),
    "country": _split(
        "France,Japan,Brazil,Kenya,Norway,Portugal,India,Canada,Egypt,Peru,Austria,Vietnam,Ireland,Poland,Chile,"
        "Morocco,Finland,Greece,Thailand,Mexico,New Zealand,South Korea,Switzerland"
    ),
    "language": _split(
        "French,German,Spanish,Japanese,Italian,Portuguese,Arabic,Dutch,Polish,Korean,Swedish,Turkish,Greek,Hindi"
    ),
    "currency": _split("USD,EUR,GBP,JPY,CHF,CAD,AUD,INR,CNY,SEK,BRL,MXN"),
    "color": _split("red,blue,green,yellow,orange,purple,white,black,pink,turquoise,grey,warm white"),
    "room": _split(
        "kitchen,bedroom,living room,bathroom,office,garage,hallway,basement,nursery,garden,attic,dining room"
    ),
    "device": _split(
        "lamp,heater,fan,television,speaker,coffee machine,dishwasher,vacuum,radio,blinds,humidifier"
    ),
    "song": _split(
        "Blue Harbour,Winter Lights,Paper Boats,Run to the River,Golden Hour,Midnight Train,Slow Dancing,"
        "The Long Way Home,Neon Rain,Little Island"
    ),
    "artist": _split(
        "The Lanterns,Maya Stone,Northern Echo,DJ Falcon,Clara Vale,The Paper Kites,Iron Meadow"
    ),
    "genre": _split(
        "jazz,rock,classical,blues,hip hop,folk,techno,soul,reggae,country,thriller,comedy,fantasy"
    ),
    "film": _split(
        "The Quiet Sea,Red Horizon,Night Market,The Last Orchard,Paper Tigers,Echo Valley,Silver Lake,A Winter's Debt"
    ),
    "book": _split(
        "The Salt Road,Glass Houses,A History of Rain,The Clockmaker,Letters to Nobody,Under the Ice,Small Hours"
    ),
    "dish": _split(
        "lasagne,pad thai,goulash,ramen,paella,tacos,risotto,pancakes,falafel,chicken curry,pumpkin soup,sushi,"
        "apple strudel,lentil stew,burrito,pizza margherita"
    ),
    "food": _split(
        "banana,rice,salmon,avocado,bread,yogurt,almonds,cheddar,oatmeal,egg,spinach,peanut butter,tofu"
    ),
    "product": _split(
        "wireless mouse,hiking boots,desk lamp,espresso machine,yoga mat,water bottle,backpack,headphones,blender,"
        "office chair,phone case,rain jacket,mechanical keyboard,tent,cast iron pan"
    ),
    "company": _split(
        "Acme,Globex,Northwind,Initech,Bluebird Foods,Harbor Bank,Solaris Energy,Vantage Labs,Tulip Air"
    ),
    "ticker": _split("AAPL,MSFT,TSLA,NVDA,AMZN,GOOG,SAP,NFLX,IBM,ORCL,BMW,KO"),
    "airport": _split("JFK,VIE,LHR,NRT,SFO,CDG,FRA,SYD,GRU,DXB,HND,BCN,ZRH,ORD"),
    "restaurant": _split(
        "Luigi's,The Green Table,Sakura,Casa Verde,Blue Door,Zum Hirschen,Spice Route,Café Central"
    ),
    "shop": _split(
        "the bakery,the pharmacy,the post office,IKEA,the bookshop,the hardware store,the library"
    ),
    "sport": _split("football,tennis,basketball,swimming,hockey,volleyball,chess,rugby,handball"),
    "team": _split("Lions,Falcons,Rapid,Red Stars,Harbor City,United,Wolves,Sharks,Comets"),
    "animal": _split("penguin,tiger,octopus,koala,eagle,dolphin,hedgehog,wolf,giraffe,bat,tortoise,lynx"),
    "plant": _split("tomato,basil,orchid,fern,lavender,cactus,rose,bamboo,mint,olive tree"),
    "word": _split(
        "serendipity,ubiquitous,ephemeral,candid,resilient,nostalgia,pragmatic,lucid,benevolent,arcane"
    ),
    "unit": _split(
        "km,miles,kg,pounds,litres,gallons,meters,feet,celsius,fahrenheit,inches,cm,ounces,grams,hours,minutes"
    ),
    "service": _split(
        "billing,auth,search,checkout,gateway,mailer,reports,payments,inventory,frontend,scheduler"
    ),
    "host": _split("db-1,web-02,mail.internal,cache-eu,worker-7,10.0.0.12,192.168.1.40,edge-3,build-server"),
    "branch": _split(
        "main,develop,feature/login,fix/typo,release-2.4,hotfix/timeouts,experiment,docs-update"
    ),
    "channel": _split("#general,#random,#support,#design,#releases,#team-blue,#ops,#announcements"),
    "table": _split("users,orders,products,invoices,sessions,customers,events,payments,employees"),
    "department": _split("sales,marketing,finance,engineering,legal,support,design,logistics"),
    "symptom": _split("headache,fever,cough,back pain,sore throat,rash,nausea,dizziness"),
    "element": _split("iron,gold,helium,carbon,oxygen,copper,sodium,silver,mercury,neon"),
    "planet": _split("Mars,Venus,Jupiter,Saturn,Mercury,Neptune,Uranus"),
    "sky": _split("sunny,cloudy,light rain,clear,overcast,foggy,snow,windy,thunderstorms"),
    "state": _split(
        "running,stopped,delayed,on time,in transit,delivered,pending,healthy,degraded,paid,open"
    ),
    "reason": _split(
        "the service is not available,access was denied,there is no such entry,the connection timed out,"
        "the name is already taken,the quota is used up,the file does not exist,the address is not valid,"
        "the account is locked,nothing matches,the server answered with status 503,the disk is full"
    ),
    "pattern": _split(
        r"TODO,FIXME,import os,def main,password,timeout,deprecated,console.log,raise ValueError,http://,version,^#,error|warning,class \w+"
    ),
    "command": _split(
        "git status,ls -la,python --version,df -h,make test,npm install,pytest -q,git log --oneline -5,uname -a,"
        "du -sh *,cat /etc/hostname,docker ps,pip list,wc -l *.py,whoami,tar czf backup.tgz src"
    ),
    "glob": _split(
        "*.py,**/*.md,*.txt,src/**/*.ts,**/*.json,test_*.py,*.csv,**/Dockerfile,*.log,docs/*.md,**/*.yaml"
    ),
    "sql": _split(
        "SELECT * FROM users,SELECT COUNT(*) FROM orders,SELECT name FROM products WHERE price > 20,"
        "DELETE FROM sessions,SELECT id FROM events ORDER BY id DESC LIMIT 5"
    ),
    "subject": _split(
        "Meeting notes,Invoice for May,Trip to Lisbon,Question about the contract,Welcome aboard,Schedule change,"
        "Your order,Weekly report,Happy birthday,Draft for review"
    ),
    "title": _split(
        "Dentist,Team lunch,Budget review,Yoga class,Call with Priya,Release party,Parents' evening,Sprint planning,"
        "Piano lesson,Interview,Board meeting,Book club,Car inspection,Quarterly review"
    ),
    "category": _split("travel,food,office,rent,books,health,insurance,gifts,fuel,training"),
    "label": _split("urgent,bug,later,important,private,waiting,idea,blocked,review,home"),
    "equation": _split("x**2 - 4 = 0,2*x + 3 = 11,x**3 = 27,3*x - 7 = x + 5,x**2 + x = 12,5*x = 2*x + 9"),
    "stone": _split("marble,granite,slate,limestone,basalt"),
    "version": _split("1.4.2,2.0.0,0.9.1,3.11,v2.5,2026.1,1.0.0-beta,4.2"),
}
ZH_PEOPLE = _split("小明,王芳,李雷,张伟,陈静,刘洋,赵敏,孙丽,周杰,吴磊")
DE_CITIES = _split(
    "Wien,München,Köln,Genf,Zürich,Rom,Lissabon,Prag,Warschau,Hamburg,Salzburg,Kopenhagen,Brüssel,Athen,Graz,Mailand"
)
ZH_CITIES = _split("北京,上海,广州,深圳,成都,杭州,东京,巴黎,伦敦,纽约,柏林,罗马,悉尼,西安,南京,维也纳")

EN_NUMBERS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
DE_NUMBERS = (
    "null",
    "eins",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
)
ZH_NUMBERS = ("零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十")

WEEKDAYS = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "de": ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"),
    "zh": ("周一", "周二", "周三", "周四", "周五", "周六", "周日"),
}
ON_WEEKDAY = {"en": "{}", "de": "{}", "zh": "{}"}
RELATIVE_DAYS = {
    "en": ("today", "tomorrow", "the day after tomorrow"),
    "de": ("heute", "morgen", "übermorgen"),
    "zh": ("今天", "明天", "后天"),
}
MONTHS = {
    "en": _split("January,February,March,April,May,June,July,August,September,October,November,December"),
    "de": _split("Januar,Februar,März,April,Mai,Juni,Juli,August,September,Oktober,November,Dezember"),
    "zh": _split("一月,二月,三月,四月,五月,六月,七月,八月,九月,十月,十一月,十二月"),
}

ZONES = (
    ("Vienna", "Wien", "维也纳", "Europe/Vienna"),
    ("London", "London", "伦敦", "Europe/London"),
    ("Paris", "Paris", "巴黎", "Europe/Paris"),
    ("Berlin", "Berlin", "柏林", "Europe/Berlin"),
    ("Munich", "München", "慕尼黑", "Europe/Berlin"),
    ("Rome", "Rom", "罗马", "Europe/Rome"),
    ("Madrid", "Madrid", "马德里", "Europe/Madrid"),
    ("Barcelona", "Barcelona", "巴塞罗那", "Europe/Madrid"),
    ("Lisbon", "Lissabon", "里斯本", "Europe/Lisbon"),
    ("Athens", "Athen", "雅典", "Europe/Athens"),
    ("Zurich", "Zürich", "苏黎世", "Europe/Zurich"),
    ("Oslo", "Oslo", "奥斯陆", "Europe/Oslo"),
    ("Stockholm", "Stockholm", "斯德哥尔摩", "Europe/Stockholm"),
    ("Helsinki", "Helsinki", "赫尔辛基", "Europe/Helsinki"),
    ("Copenhagen", "Kopenhagen", "哥本哈根", "Europe/Copenhagen"),
    ("Amsterdam", "Amsterdam", "阿姆斯特丹", "Europe/Amsterdam"),
    ("Brussels", "Brüssel", "布鲁塞尔", "Europe/Brussels"),
    ("Prague", "Prag", "布拉格", "Europe/Prague"),
    ("Warsaw", "Warschau", "华沙", "Europe/Warsaw"),
    ("Budapest", "Budapest", "布达佩斯", "Europe/Budapest"),
    ("Dublin", "Dublin", "都柏林", "Europe/Dublin"),
    ("Moscow", "Moskau", "莫斯科", "Europe/Moscow"),
    ("Istanbul", "Istanbul", "伊斯坦布尔", "Europe/Istanbul"),
    ("Kyiv", "Kiew", "基辅", "Europe/Kyiv"),
    ("New York", "New York", "纽约", "America/New_York"),
    ("Boston", "Boston", "波士顿", "America/New_York"),
    ("Miami", "Miami", "迈阿密", "America/New_York"),
    ("Chicago", "Chicago", "芝加哥", "America/Chicago"),
    ("Denver", "Denver", "丹佛", "America/Denver"),
    ("Los Angeles", "Los Angeles", "洛杉矶", "America/Los_Angeles"),
    ("San Francisco", "San Francisco", "旧金山", "America/Los_Angeles"),
    ("Seattle", "Seattle", "西雅图", "America/Los_Angeles"),
    ("Toronto", "Toronto", "多伦多", "America/Toronto"),
    ("Vancouver", "Vancouver", "温哥华", "America/Vancouver"),
    ("Mexico City", "Mexiko-Stadt", "墨西哥城", "America/Mexico_City"),
    ("São Paulo", "São Paulo", "圣保罗", "America/Sao_Paulo"),
    ("Buenos Aires", "Buenos Aires", "布宜诺斯艾利斯", "America/Argentina/Buenos_Aires"),
    ("Lima", "Lima", "利马", "America/Lima"),
    ("Bogotá", "Bogotá", "波哥大", "America/Bogota"),
    ("Tokyo", "Tokio", "东京", "Asia/Tokyo"),
    ("Osaka", "Osaka", "大阪", "Asia/Tokyo"),
    ("Seoul", "Seoul", "首尔", "Asia/Seoul"),
    ("Beijing", "Peking", "北京", "Asia/Shanghai"),
    ("Shanghai", "Shanghai", "上海", "Asia/Shanghai"),
    ("Hong Kong", "Hongkong", "香港", "Asia/Hong_Kong"),
    ("Taipei", "Taipeh", "台北", "Asia/Taipei"),
    ("Singapore", "Singapur", "新加坡", "Asia/Singapore"),
    ("Bangkok", "Bangkok", "曼谷", "Asia/Bangkok"),
    ("Jakarta", "Jakarta", "雅加达", "Asia/Jakarta"),
    ("Manila", "Manila", "马尼拉", "Asia/Manila"),
    ("Mumbai", "Mumbai", "孟买", "Asia/Kolkata"),
    ("Delhi", "Delhi", "德里", "Asia/Kolkata"),
    ("Dubai", "Dubai", "迪拜", "Asia/Dubai"),
    ("Tehran", "Teheran", "德黑兰", "Asia/Tehran"),
    ("Jerusalem", "Jerusalem", "耶路撒冷", "Asia/Jerusalem"),
    ("Cairo", "Kairo", "开罗", "Africa/Cairo"),
    ("Nairobi", "Nairobi", "内罗毕", "Africa/Nairobi"),
    ("Lagos", "Lagos", "拉各斯", "Africa/Lagos"),
    ("Johannesburg", "Johannesburg", "约翰内斯堡", "Africa/Johannesburg"),
    ("Sydney", "Sydney", "悉尼", "Australia/Sydney"),
    ("Melbourne", "Melbourne", "墨尔本", "Australia/Melbourne"),
    ("Auckland", "Auckland", "奥克兰", "Pacific/Auckland"),
    ("Honolulu", "Honolulu", "檀香山", "Pacific/Honolulu"),
    ("UTC", "UTC", "UTC", "UTC"),
)

STEMS = _split(
    "notes,report,plan,budget,todo,main,app,config,index,data,ideas,letter,summary,draft,users,orders,recipe,trip,"
    "log,setup,server,client,test,model,results,poem,shopping,contacts,readme,invoice,schedule,garden,harbor,falcon"
)
ENDINGS = (
    "txt",
    "txt",
    "md",
    "md",
    "py",
    "json",
    "csv",
    "toml",
    "yaml",
    "html",
    "log",
    "js",
    "rs",
    "cfg",
    "sql",
)
BARE_FILES = ("Makefile", "Dockerfile", "LICENSE", "README", ".gitignore", ".env")
FOLDERS = _split(
    "src,docs,tests,lib,data,notes,config,scripts,reports,images,old,archive,2026,projects,assets,backup,drafts,api,tools,home"
)
STREETS = _split(
    "Main Street,Oak Lane,Harbor Road,Lindengasse,Hauptstraße,Park Avenue,Mill Lane,Rue Verte,Station Road,Elm Street,Bergweg"
)
TOPS = ("com", "org", "net", "io", "dev", "at", "de", "example", "co.uk")

CHOICES = {
    "de": {
        "celsius": "Celsius", "fahrenheit": "Fahrenheit", "low": "niedrig", "medium": "mittel", "high": "hoch",
        "open": "offen", "closed": "geschlossen", "small": "klein", "large": "groß", "daily": "täglich",
        "weekly": "wöchentlich", "monthly": "monatlich", "walking": "zu Fuß", "driving": "mit dem Auto",
        "economy": "Economy", "business": "Business", "first": "erste Klasse",
    },
    "zh": {
        "celsius": "摄氏度", "fahrenheit": "华氏度", "low": "低", "medium": "中", "high": "高", "open": "打开",
        "closed": "关闭", "small": "小", "large": "大", "daily": "每天", "weekly": "每周", "monthly": "每月",
        "walking": "步行", "driving": "开车", "economy": "经济舱", "business": "商务舱", "first": "头等舱",
    },
}  # fmt: skip

THINGS = {
    "en": _split(
        "the red folder,the spare keys,a blue umbrella,the garden chairs,a new kettle,the train tickets,the old piano,two bicycles,the camera,the meeting room"
    ),
    "de": _split(
        "die rote Mappe,die Ersatzschlüssel,ein blauer Schirm,die Gartenstühle,ein neuer Wasserkocher,die Fahrkarten,das alte Klavier,zwei Fahrräder,die Kamera"
    ),
    "zh": _split("红色文件夹,备用钥匙,蓝色雨伞,花园椅子,新水壶,火车票,旧钢琴,两辆自行车,照相机"),
}
TOPICS = {
    "en": _split(
        "solar panels,the French Revolution,electric bikes,black holes,sourdough bread,tax rules for freelancers,coral reefs,remote work,chess openings,volcanoes,knitting patterns,the history of tea,home insulation,quantum computers"
    ),
    "de": _split(
        "Solaranlagen,die Französische Revolution,Elektrofahrräder,schwarze Löcher,Sauerteigbrot,Steuerregeln,Korallenriffe,Vulkane,die Geschichte des Tees,Wärmepumpen"
    ),
    "zh": _split("太阳能电池板,法国大革命,电动自行车,黑洞,酸面包,税收政策,珊瑚礁,火山,茶的历史,量子计算机"),
}
CHORES = {
    "en": _split(
        "buy milk,call the plumber,water the plants,book the flights,pay the rent,renew the passport,pick up the parcel,wash the car,send the invoice,clean the windows,order new filters,write to Priya,charge the camera,return the library books,fix the bicycle,feed the cat,update the website,take out the rubbish"
    ),
    "de": _split(
        "Milch kaufen,den Installateur anrufen,die Pflanzen gießen,die Flüge buchen,die Miete bezahlen,das Paket abholen,das Auto waschen,die Rechnung schicken,die Fenster putzen,das Fahrrad reparieren,die Katze füttern"
    ),
    "zh": _split("买牛奶,给水管工打电话,浇花,订机票,交房租,取包裹,洗车,寄发票,擦窗户,修自行车,喂猫"),
}
SENTENCES = {
    "en": (
        "I will be late tomorrow", "{person} has {thing}", "The meeting moves to room {number}", "Buy {thing} in {city}",
        "Hello {person}, see you in {city}", "We need {number} more chairs", "the code is {number}", "All is well",
        "Remember to lock the door", "{number} people have answered so far", "Thanks for {thing}", "milk, eggs, bread",
        "Can you bring {thing} on Friday?", "The train to {city} leaves at platform {number}", "version {number} is out",
        "be kind to yourself", "hello world", "Do not touch {thing}!", "The password for the guest network is harbor{number}",
        "I love the smell of rain, especially in {city}",
    ),
    "de": (
        "Ich komme morgen später", "{person} hat {thing}", "Die Besprechung ist in Raum {number}", "Hallo {person}, bis bald in {city}",
        "Wir brauchen noch {number} Stühle", "Alles in Ordnung", "Bitte die Tür abschließen", "Danke für alles", "Guten Morgen",
        "Der Zug nach {city} fährt von Gleis {number}", "Milch, Eier, Brot",
    ),
    "zh": (
        "我明天会晚到", "{person}有{thing}", "会议改到{number}号房间", "你好，{person}，{city}见", "我们还需要{number}把椅子",
        "一切都好", "记得锁门", "谢谢大家", "早上好", "牛奶、鸡蛋、面包",
    ),
}  # fmt: skip
