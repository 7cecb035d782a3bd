"""The codes of languages and currencies, for parameters that want a code where a person says a name."""

from __future__ import annotations

import re

_NAMES = {
    "ar": "arabic arabisch 阿拉伯语",
    "bg": "bulgarian bulgarisch",
    "cs": "czech tschechisch 捷克语",
    "da": "danish dänisch 丹麦语",
    "de": "german deutsch 德语",
    "el": "greek griechisch 希腊语",
    "en": "english englisch 英语 英文",
    "es": "spanish spanisch 西班牙语",
    "et": "estonian estnisch",
    "fa": "persian persisch 波斯语",
    "fi": "finnish finnisch 芬兰语",
    "fr": "french französisch 法语",
    "he": "hebrew hebräisch",
    "hi": "hindi 印地语",
    "hr": "croatian kroatisch",
    "hu": "hungarian ungarisch 匈牙利语",
    "id": "indonesian indonesisch",
    "it": "italian italienisch 意大利语",
    "ja": "japanese japanisch 日语 日文",
    "ko": "korean koreanisch 韩语",
    "lt": "lithuanian litauisch",
    "lv": "latvian lettisch",
    "nl": "dutch niederländisch holländisch 荷兰语",
    "no": "norwegian norwegisch 挪威语",
    "pl": "polish polnisch 波兰语",
    "pt": "portuguese portugiesisch 葡萄牙语",
    "ro": "romanian rumänisch",
    "ru": "russian russisch 俄语",
    "sk": "slovak slowakisch",
    "sl": "slovenian slowenisch",
    "sr": "serbian serbisch",
    "sv": "swedish schwedisch 瑞典语",
    "th": "thai thailändisch 泰语",
    "tr": "turkish türkisch 土耳其语",
    "uk": "ukrainian ukrainisch 乌克兰语",
    "vi": "vietnamese vietnamesisch 越南语",
    "zh": "chinese mandarin chinesisch 中文 汉语",
}
CODES = {name: code for code, names in _NAMES.items() for name in names.split()}

_MONEY = {
    "AUD": "australian dollars?",
    "CAD": "canadian dollars?",
    "CHF": "francs?|franken",
    "CNY": "yuan|rmb|人民币",
    "EUR": "euros?|€|欧元",
    "GBP": "pounds?|quid|pfund|£|英镑",
    "INR": "rupees?|rupien",
    "JPY": "yen|日元",
    "USD": "(?<!australian )(?<!canadian )dollars?|bucks|\\$|美元",
}


def is_currency(code: str, request: str) -> bool:
    """Whether a request speaks of the currency with this code."""
    words = _MONEY.get(code)
    return words is not None and bool(re.search(rf"(?<![a-z])(?:{words})(?![a-z])", request, re.IGNORECASE))
