"""Sentences that users want sent, written or searched for, and the words that other sentences use."""

from __future__ import annotations

# {n} thing, {N} name, {a} adjective, {v} verb, {p} place, {d} day, {i} number
PATTERNS = {
    "en": (
        "The {n} is {a}", "I will {v} the {n} on {d}", "{N} said the {n} was {a}", "Please {v} the {n} before {d}", "Running {i} minutes late",
        "We are out of {n}s", "The {a} {n} is in the {p}", "Don't forget to {v} the {n}!", "Can you {v} my {n} on {d}?", "See you at the {p}",
        "Lunch at {i}?", "{N} and {N} will {v} it", "There are {i} {n}s left in the {p}", "Thanks a lot for the {n}, {N}!", "I'm at the {p}, where are you?",
        "Your {n} arrives on {d}", "The {p} is closed until {d}", "Ask {N} about the {n}", "No {n} today, sorry", "Who took my {n}?",
        "Meet me at the {p} at {i}:30", "{N} needs {i} more {n}s", "Fix the {a} {n}", "Update {n} to {i}.{i}", "Happy birthday, {N}!",
        "I've moved the {n} to the {p}", "Let's {v} the {n} together", "The {n} costs {i} euros", "Could we talk about the {n}?", "On my way",
        "It was {a}, {a} and far too long", "The {n} doesn't work; the {n} does", "Is the {n} still {a}?", "{N} won't come on {d} because of the {n}.",
        "All {n}s must be {a}.", "We {v} every {d}.", "Nobody told {N} that the {n} is {a}", "Bring a {n} and {i} {n}s", "Good luck with the {n}",
        "Quarterly {n} report: {i}% up", "The new {n} is live", "Server {n}-{i} is down", "ETA {i} min", "Call {N} back", "Great work everyone!",
        "Dear {N}, the {n} you ordered is {a}.", "Wi-Fi password: {n}{i}", "Pick up {n}, {n} and {n}", "{n}, {n}, {n}", "we need to {v} this asap",
        "The early {n} catches the {n}", "My {n} hurts", "I love {N}'s {n}", "{i} {a} {n}s", "Out of office until {d}", "Parking is at the {p}",
    ),
    "de": (
        "Der Schlüssel liegt im {p}", "Ich komme am {d} später", "{N} bringt den {n} mit", "Bitte den {n} bis {d} abgeben", "Wir brauchen {i} neue Stühle",
        "Treffen um {i} Uhr beim {p}", "Vergiss den {n} nicht!", "Alles Gute zum Geburtstag, {N}!", "Der {n} ist kaputt", "Kannst du am {d} kommen?",
        "Das Büro ist am {d} geschlossen", "Viele Grüße aus {N}", "Der {n} kostet {i} Euro", "Danke für den {n}, {N}", "Bin gleich da",
        "{N} und {N} kümmern sich um den {n}", "Wer hat meinen {n} gesehen?", "Das Passwort lautet {n}{i}", "Brot, Käse, Äpfel", "Ich rufe dich am {d} zurück",
    ),
    "zh": (
        "{d}见", "我会晚到{i}分钟", "{p}关门了", "请把{n}放在{p}", "{n}坏了", "别忘了带{n}", "生日快乐", "谢谢你的{n}", "{d}下午开会", "我们还需要{i}个{n}",
        "我在{p}等你", "密码是{i}{i}", "报告已经写好了", "{n}要{i}块钱", "今晚不回家吃饭", "{d}一起去{p}吧", "请尽快回复", "价格上涨了{i}%",
    ),
}  # fmt: skip
PARTS = {
    "en": {
        "n": "report,lamp,ticket,bike,printer,contract,cake,window,garden,invoice,keyboard,budget,train,parcel,meeting,ladder,sofa,camera,recipe,server,draft,battery,map,piano,coat,fence,boiler,dataset,poster,kettle,schedule,password,dog,drill,mattress,form,slide,roof,tent,violin",
        "a": "late,red,broken,ready,heavy,wonderful,cold,cheap,too small,nearly done,old,bright,missing,urgent,quiet,wet,brand-new,half-empty,delicious,confidential",
        "v": "fix,bring,return,paint,check,sign,cancel,order,clean,move,share,review,sell,water,print,test,finish,pack,rewrite,ship",
        "p": "kitchen,station,office,second floor,library,car park,cinema,harbour,school,main entrance,basement,bakery,town hall,lobby,warehouse",
        "d": "Monday,Tuesday,Friday,Sunday,the weekend,tomorrow,next week,3 May,the 14th,Thursday morning",
    },
    "de": {
        "n": "Bericht,Schlüssel,Drucker,Vertrag,Kuchen,Koffer,Zug,Stuhl,Mantel,Plan,Antrag,Bohrer,Wasserkocher,Schrank",
        "a": "spät,rot,kaputt,fertig,schwer",
        "v": "holen,bringen,prüfen",
        "p": "Keller,Bahnhof,Büro,Eingang,Garten,Rathaus,Kino,Hafen",
        "d": "Montag,Dienstag,Freitag,Sonntag,Donnerstag,Mittwoch",
    },
    "zh": {
        "n": "报告,钥匙,打印机,合同,蛋糕,箱子,雨伞,电脑,相机,水壶,自行车,文件",
        "a": "红色,新的",
        "v": "修理,带来",
        "p": "厨房,车站,办公室,图书馆,门口,超市,电影院,公园",
        "d": "周一,周二,周五,周日,明天,后天,下周三",
    },
}  # fmt: skip
INVENTED = {
    "begin": ["Ka", "Bren", "To", "Vel", "Mar", "Sil", "Or", "Thal", "Quin", "Dor", "Fen", "Jas", "Lu", "Nor", "Pel", "Rho", "Sten", "Ul", "Wex", "Yor", "Zan", "Ibra", "Och", "Grim", "Bal", "Hux", "Cor", "Dra", "El", "Fi"],
    "middle": ["ri", "la", "ven", "do", "mi", "tha", "ko", "se", "na", "bu", "lo", "gar", "pe", "ti", "wa", "zu", "ne", "ra", "sho", "li"],
    "end": ["n", "dis", "th", "ra", "lyn", "mont", "ska", "ford", "wick", "va", "ston", "el", "quist", "ova", "mar", "tex", "ium", "by", "son", "ez", "ko", "-9", "z"],
}  # fmt: skip
CODE = (
    'print("{s}")', "{w} = {i}", "def {w}({x}, {y}):\n    return {x} + {y}", 'console.log("{s}");', "const {w} = {i};", "import {w}",
    'echo "{s}"', "for {x} in range({i}):\n    print({x})", '{{"{w}": {i}}}', '{{"{w}": "{s}", "{x}": {i}}}', "<h1>{s}</h1>", "# {s}", "{w}: {i}",
    "{w}={i}\n{x}={y}", "SELECT {w} FROM {x} WHERE {y} = {i};", "if {w} > {i}:\n    {x} = True", "#!/bin/sh\n{w} --{x} {i}", "let {w} = [{i}, {i}, {i}];",
    "{w},{x}\n{i},{i}", "## {s}\n\n- {w}\n- {x}", "assert {w}({i}) == {i}", "<p class=\"{w}\">{s}</p>", "[{w}]\n{x} = {i}", "return {w}[{i}]", "fn main() {{\n    println!(\"{s}\");\n}}",
    "{w}.{x}({y})", "body {{ {w}: {i}px; }}", "from {w} import {x}", "{w} += {i}", "export {w}_{x}={i}", "lambda {x}: {x} * {i}", "git commit -m \"{s}\"",
)  # fmt: skip
