"""Other words for choices: users' words if a tool has an enumeration."""

from __future__ import annotations

# Each choice with its replacements. English, German and Chinese.
SYNONYMS: dict[str, dict[str, str]] = {
    "en": {
        "high": "top|very important|important", "low": "not important|minor|lowest", "medium": "normal|average|middling",
        "critical": "really urgent|as bad as it gets", "done": "finished|completed|ready", "open": "still open|unresolved",
        "closed": "finished|shut", "todo": "not started|to do", "in_progress": "being worked on|in progress|started",
        "blocked": "stuck", "daily": "every day|each day|once a day", "weekly": "every week|each week|once a week",
        "monthly": "every month|each month|once a month", "yearly": "every year|once a year|annually",
        "hourly": "every hour|once an hour", "quarterly": "every quarter|every three months", "newest": "latest first|most recent first|newest first",
        "oldest": "oldest first|earliest first", "price": "by price|cheapest first", "rating": "by rating|best first",
        "name": "alphabetically|by name", "celsius": "C|degrees C|°C", "fahrenheit": "F|degrees F|°F", "small": "little|tiny|S",
        "large": "big|huge|L", "walking": "on foot|by foot", "driving": "by car", "transit": "by public transport|by bus or train",
        "cycling": "by bike|with my bicycle", "car": "by car", "production": "prod|live|the live system", "staging": "stage|the staging system",
        "dev": "development", "test": "testing", "easy": "simple|not too hard", "hard": "difficult|tough", "buy": "get|purchase", "sell": "get rid of",
        "pdf": "a PDF", "xlsx": "Excel|a spreadsheet|an Excel file", "csv": "comma separated|a CSV file", "docx": "Word|a Word document",
        "png": "a PNG", "jpg": "a JPEG|jpeg", "male": "a man's", "female": "a woman's", "public": "visible to everybody|for everyone",
        "private": "only for me|hidden from others", "accepted": "yes|I'll come", "declined": "no|I can't make it", "tentative": "maybe|perhaps",
        "approve": "looks good", "in_review": "under review", "won": "we got it|signed", "lost": "we did not get it", "vegetarian": "without meat|no meat",
        "vegan": "plant based|nothing from animals", "gluten-free": "without gluten|no gluten", "used": "second hand|pre-owned", "new": "brand new|unused",
        "damaged": "broken", "wrong_size": "too small|too big|doesn't fit", "not_needed": "don't need it any more", "sick": "ill|not well",
        "vacation": "a holiday|holidays", "week": "this week|the week", "month": "this month|the month", "year": "this year|the year",
        "editor": "may edit|can change things", "viewer": "may only look|read only", "admin": "with all rights|administrator",
        "error": "errors only", "warning": "warnings", "eu": "Europe", "us": "the States|America", "asia": "Asia", "morning": "before noon",
        "aisle": "on the aisle", "window": "by the window", "first": "first class", "business": "business class", "lock": "shut", "unlock": "open up",
        "upper": "capitals|all caps", "lower": "small letters", "zip": "a zip file", "memory": "RAM", "cpu": "processor|CPU",
        "great": "fantastic|wonderful", "bad": "not good|poor", "awful": "terrible|horrible", "calm": "relaxed", "km": "kilometres", "miles": "mi",
        "python": "Python|py", "javascript": "JS|JavaScript", "typescript": "TS|TypeScript", "go": "Golang", "weekdays": "Monday to Friday|working days",
        "weekends": "Saturdays and Sundays|at the weekend", "once": "just once|only once", "staff": "the employees|our people", "everyone": "all of us|everybody",
    },
    "de": {
        "high": "hohe Priorität|wichtig|hoch", "low": "niedrige Priorität|unwichtig|gering", "medium": "mittel|normal", "done": "fertig|erledigt",
        "open": "offen|noch offen", "closed": "geschlossen|zu", "todo": "noch nicht begonnen", "in_progress": "in Arbeit", "blocked": "blockiert",
        "daily": "jeden Tag|täglich", "weekly": "jede Woche|wöchentlich", "monthly": "jeden Monat|monatlich", "yearly": "jedes Jahr|jährlich",
        "newest": "die neuesten zuerst", "oldest": "die ältesten zuerst", "price": "nach Preis", "name": "nach Namen|alphabetisch", "small": "klein|kleine",
        "large": "groß|große", "walking": "zu Fuß", "driving": "mit dem Auto", "cycling": "mit dem Rad", "transit": "mit den Öffis", "car": "mit dem Auto",
        "production": "Produktion|live", "easy": "leicht|einfach", "hard": "schwer|schwierig", "buy": "kaufen", "sell": "verkaufen", "new": "neu",
        "used": "gebraucht", "damaged": "kaputt|beschädigt", "private": "privat|nur für mich", "public": "öffentlich", "vegetarian": "vegetarisch",
        "vegan": "vegan", "sick": "krank", "vacation": "Urlaub", "week": "Woche", "month": "Monat", "year": "Jahr", "morning": "am Vormittag",
        "lunch": "Mittagessen", "dinner": "Abendessen", "breakfast": "Frühstück", "water": "Wasser", "coffee": "Kaffee", "tea": "Tee", "garage": "Garage",
        "front": "vorne", "back": "hinten", "health": "Gesundheit", "travel": "Reisen", "food": "Essen", "monday": "Montag", "tuesday": "Dienstag",
        "wednesday": "Mittwoch", "thursday": "Donnerstag", "friday": "Freitag", "saturday": "Samstag", "sunday": "Sonntag", "window": "am Fenster",
        "aisle": "am Gang", "red": "rot", "great": "großartig", "good": "gut", "bad": "schlecht", "running": "Laufen", "swimming": "Schwimmen",
        "electricity": "Strom", "light": "Licht", "temperature": "Temperatur", "humidity": "Luftfeuchtigkeit", "garden": "Garten", "night": "Nacht",
    },
    "zh": {
        "high": "高|很重要|高优先级", "low": "低|不重要|低优先级", "medium": "中等|一般", "done": "完成了|已完成", "open": "未解决|打开", "closed": "关闭|已关闭",
        "in_progress": "进行中", "blocked": "卡住了", "daily": "每天|每日", "weekly": "每周", "monthly": "每月|每个月", "yearly": "每年", "newest": "最新的",
        "oldest": "最早的", "price": "按价格", "name": "按名称", "small": "小|小号", "large": "大|大号", "walking": "走路|步行", "driving": "开车",
        "cycling": "骑车", "transit": "坐公交", "car": "开车", "production": "生产环境", "staging": "测试环境", "easy": "简单", "hard": "难|困难", "buy": "买入",
        "sell": "卖出", "new": "全新", "used": "二手", "damaged": "坏了", "private": "仅自己可见", "public": "公开", "vegetarian": "素食", "vegan": "纯素", "sick": "病假",
        "vacation": "年假", "week": "这周", "month": "这个月", "year": "今年", "morning": "上午", "lunch": "午饭", "dinner": "晚饭", "breakfast": "早饭", "water": "水",
        "coffee": "咖啡", "tea": "茶", "window": "靠窗", "aisle": "靠过道", "monday": "星期一", "friday": "星期五", "saturday": "星期六", "sunday": "星期天",
        "running": "跑步", "swimming": "游泳", "good": "好", "bad": "不好", "health": "健康", "travel": "旅行", "temperature": "温度", "humidity": "湿度", "night": "夜间",
    },
}  # fmt: skip

LANGUAGE_CODES = (  # English, German, Chinese, and the code of ISO 639-1
    ("French", "Französisch", "法语", "fr"), ("German", "Deutsch", "德语", "de"), ("Spanish", "Spanisch", "西班牙语", "es"),
    ("Japanese", "Japanisch", "日语", "ja"), ("Italian", "Italienisch", "意大利语", "it"), ("Portuguese", "Portugiesisch", "葡萄牙语", "pt"),
    ("Arabic", "Arabisch", "阿拉伯语", "ar"), ("Dutch", "Niederländisch", "荷兰语", "nl"), ("Polish", "Polnisch", "波兰语", "pl"),
    ("Korean", "Koreanisch", "韩语", "ko"), ("Swedish", "Schwedisch", "瑞典语", "sv"), ("Turkish", "Türkisch", "土耳其语", "tr"),
    ("Greek", "Griechisch", "希腊语", "el"), ("Hindi", "Hindi", "印地语", "hi"), ("English", "Englisch", "英语", "en"),
    ("Chinese", "Chinesisch", "中文", "zh"), ("Russian", "Russisch", "俄语", "ru"), ("Czech", "Tschechisch", "捷克语", "cs"),
    ("Danish", "Dänisch", "丹麦语", "da"), ("Finnish", "Finnisch", "芬兰语", "fi"),
)  # fmt: skip
CURRENCY_CODES = (
    ("dollars", "Dollar", "美元", "USD"), ("euros", "Euro", "欧元", "EUR"), ("pounds", "Pfund", "英镑", "GBP"), ("yen", "Yen", "日元", "JPY"),
    ("Swiss francs", "Franken", "瑞士法郎", "CHF"), ("Canadian dollars", "kanadische Dollar", "加元", "CAD"), ("rupees", "Rupien", "卢比", "INR"),
    ("yuan", "Yuan", "人民币", "CNY"), ("Swedish kronor", "schwedische Kronen", "瑞典克朗", "SEK"), ("pesos", "Pesos", "比索", "MXN"),
    ("Australian dollars", "australische Dollar", "澳元", "AUD"), ("zloty", "Zloty", "兹罗提", "PLN"),
)  # fmt: skip
COUNTRY_CODES = (
    ("France", "Frankreich", "法国", "FR"), ("Germany", "Deutschland", "德国", "DE"), ("Japan", "Japan", "日本", "JP"), ("Brazil", "Brasilien", "巴西", "BR"),
    ("Spain", "Spanien", "西班牙", "ES"), ("Italy", "Italien", "意大利", "IT"), ("Canada", "Kanada", "加拿大", "CA"), ("India", "Indien", "印度", "IN"),
    ("Austria", "Österreich", "奥地利", "AT"), ("Switzerland", "Schweiz", "瑞士", "CH"), ("Poland", "Polen", "波兰", "PL"), ("Mexico", "Mexiko", "墨西哥", "MX"),
    ("the United States", "USA", "美国", "US"), ("the UK", "Großbritannien", "英国", "GB"), ("Norway", "Norwegen", "挪威", "NO"),
    ("Sweden", "Schweden", "瑞典", "SE"), ("Portugal", "Portugal", "葡萄牙", "PT"), ("South Korea", "Südkorea", "韩国", "KR"), ("China", "China", "中国", "CN"),
    ("Australia", "Australien", "澳大利亚", "AU"), ("the Netherlands", "Niederlande", "荷兰", "NL"), ("Kenya", "Kenia", "肯尼亚", "KE"),
)  # fmt: skip
