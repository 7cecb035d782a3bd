"""Users' manners of speaking: polite or not, with something before and after the request, and with slips."""

from __future__ import annotations

# {} is the request, {low} the same with a lowercase first letter; for requests that are not questions.
POLITE = {
    "en": (
        "Please {low}", "Could you {low}", "Can you {low}", "Hey, {low}", "{} please", "I'd like you to {low}", "Would you {low}", "pls {low}", "please {low}, thanks",
        "Can you please {low}?", "could u {low}", "I need you to {low}", "I want you to {low}", "go ahead and {low}", "Kindly {low}", "Would you mind? {}", "{}, please.",
        "Your next job: {low}", "Help me {low}", "Let's {low}", "you should {low}", "I'd appreciate it if you could {low}", "quick one: {low}", "just {low}",
    ),
    "de": ("Bitte: {}", "{}, bitte", "Kannst du das machen: {}", "{} Danke!", "Könntest du bitte Folgendes tun: {}"),
    "zh": ("请{}", "麻烦{}", "帮我{}", "{}，谢谢", "能不能{}", "请帮我{}", "我想{}"),
}  # fmt: skip
# Side remarks: the names and numbers in them are not arguments.
ASIDES = {
    "en": (
        "I have three meetings today and no time.", "Tom from the office told me to ask you.", "We just moved here from Bristol.", "It's half past six already.", "My train leaves in 20 minutes.",
        "I've been at this for two hours now.", "Last week this took me forever.", "The kids are asleep at last.", "I tried it twice and failed.", "Marta said you could do this.", "My phone is at 4%.",
        "Yesterday was a mess.", "I'm on the bus to Leeds.", "There are six of us waiting here.", "My sister Nadia usually does this for me.", "I'm back from lunch.", "The old system broke on Monday.",
        "Our landlord keeps asking.", "It has been raining since noon.", "I only slept five hours.", "I was in Porto all week.", "The meeting got moved again.", "Somebody has to do it, so", "I promised Jonas I'd take care of this:",
        "You helped me with 12 of these already.", "We're almost done for the day.", "My neighbour in 5C wants to know too.", "The boss is standing right behind me.", "I wrote it down somewhere, here it is:", "Ok here goes.",
        "Everybody else is on holiday.", "I know I asked this in October,", "Since the printer is dead:", "After a long call with the customer:", "Small favour,", "I can't believe it's November.", "As I said on the phone,", "no joke,",
    ),
    "de": (
        "Ich habe heute drei Termine.", "Mein Zug fährt in 20 Minuten.", "Frau Berger hat gesagt, du kannst das.", "Gestern war alles zu viel.", "Wir sind gerade aus Kassel zurück.", "Es ist schon halb sieben.",
        "Die Kinder schlafen endlich.", "Ich sitze seit zwei Stunden daran.", "Wir sind zu sechst hier.", "Letzte Woche ging es nicht.", "Mein Bruder Jan macht das sonst.", "Wie am Telefon besprochen:",
    ),
    "zh": ("我今天有三个会。", "我刚从苏州回来。", "火车二十分钟后就开了。", "小王让我来问你。", "昨天太忙了。", "已经六点半了。", "我试了两次都没成功。", "我们这里有六个人在等。"),
}  # fmt: skip
REASONS = {
    "en": (
        "The team of five is waiting for it.", "Lena will be happy.", "We did the same in 2019.", "Otherwise I'd have to drive to Bonn.", "I only have ten minutes.", "It's the third time this week.", "My mother in Cork asked for it.",
        "Everything else can wait till Monday.", "They called me twice about it.", "because I can't reach it from here", "so that I can go home", "before I forget", "since nobody else will", "and then I'm off to bed",
    ),
    "de": ("Sonst muss ich nach Bonn fahren.", "Ich habe nur zehn Minuten.", "Das ist schon das dritte Mal diese Woche.", "Herr Vogt wartet darauf.", "Alles andere hat Zeit bis Montag."),
}  # fmt: skip
BEFORE = {
    "en": (
        "Hi!", "Hello there.", "Hey,", "ok", "Okay, next:", "So,", "One more thing:", "I'm in a hurry.", "Sorry to bother you.", "My boss wants this today.", "It's me again.",
        "I'm planning something for the weekend.", "Quick question:", "I just got home.", "hm,", "uh,", "Right,", "Alright.", "New task:", "Before I forget:", "I was wondering,",
        "I'm on my phone so keep it short.", "We talked about this yesterday.", "As discussed with the team:", "Good morning!", "I am new here.", "No rush, but", "FYI I'm travelling.",
        "I don't have much time.", "Can't find it myself.", "My colleague asked me for this.", "It's for a friend.", "I forgot my glasses.", "yo", "Hi, I hope you're well.", "Thanks for the help so far.",
        "I'm working on a presentation.", "Not sure you can do this, but", "Let me think...", "First things first.", "Honestly,", "I'm a bit lost.",
        *ASIDES["en"],
    ),
    "de": ("Hallo!", "Guten Tag,", "Kurze Frage:", "Noch etwas:", "Ich habe es eilig.", "Also,", "Hey,", "Bevor ich es vergesse:", "Mein Chef will das wissen.", *ASIDES["de"]),
    "zh": ("你好，", "请问，", "对了，", "我赶时间。", "还有一件事：", "麻烦你，", "早上好，", *ASIDES["zh"]),
}  # fmt: skip
AFTER = {
    "en": (
        "Thanks!", "thx", "Thank you so much.", "asap", "if you can", "It's urgent.", "That's all for now.", "Much appreciated!", "ok?", "I need it for a meeting.", "It would help me a lot.",
        "Let me know when it's done.", "No need to explain.", "Cheers", "Just curious.", "My wife asked.", "right now", "Don't ask why.", "I'll wait.", "Keep it short.", "when you have a minute", "for me",
        "I have no idea myself.", "Go!", "Thank you in advance", ":)",
        *REASONS["en"],
    ),
    "de": ("Danke!", "Vielen Dank im Voraus.", "Es ist dringend.", "Das wäre nett.", "Danke dir", "Ich warte.", *REASONS["de"]),
    "zh": ("谢谢！", "麻烦了。", "急用。", "谢谢你", "辛苦了"),
}  # fmt: skip
SLIPS = {
    "en": {
        "What's": "whats", "what's": "whats", "What is": "what is", "please": "plz", "Please": "pls", "you": "u", "the": "teh", "I'm": "im", "don't": "dont", "Don't": "dont",
        "how": "hwo", "weather": "wether", "with": "wiht", "and": "adn", "for": "fro", "because": "becuase", "which": "wich", "from": "form", "about": "abuot", "search": "serach",
        "message": "mesage", "delete": "delte", "create": "craete", "email": "e-mail", "the ": "", "a ": "", "my ": "", "Show me": "show", "Find": "finde", "list": "lsit", "is": "si", "are": "r",
        "calendar": "calender", "remind": "remnid", "reminder": "remider", "change": "chnage", "Can you": "can u", "Set": "set", "Send": "sned", "turn": "trun", "many": "mny", "much": "mcuh",
    },
    "de": {"bitte": "bite", "nicht": "nciht", "die": "dei", "und": "udn", "ist": "is", "eine": "ne", "für": "fuer"},
    "zh": {},
}  # fmt: skip
