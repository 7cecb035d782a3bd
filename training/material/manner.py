"""How people say things: politely or not, with something before and after the request, and with slips."""

from __future__ import annotations

# {} is the request, {low} the same with a small letter first; for requests that are no questions
POLITE = {
    "en": (
        "Please {low}", "Could you {low}", "Can you {low}", "Hey, {low}", "{} please", "I'd like you to {low}", "Would you {low}", "pls {low}", "please {low}, thanks",
        "Can you please {low}?", "could u {low}", "I need you to {low}", "I want you to {low}", "go ahead and {low}", "Kindly {low}", "Would you mind? {}", "{}, please.",
        "Your next job: {low}", "Help me {low}", "Let's {low}", "you should {low}", "I'd appreciate it if you could {low}", "quick one: {low}", "just {low}",
    ),
    "de": ("Bitte: {}", "{}, bitte", "Kannst du das machen: {}", "{} Danke!", "Könntest du bitte Folgendes tun: {}"),
    "zh": ("请{}", "麻烦{}", "帮我{}", "{}，谢谢", "能不能{}", "请帮我{}", "我想{}"),
}  # fmt: skip
BEFORE = {
    "en": (
        "Hi!", "Hello there.", "Hey,", "ok", "Okay, next:", "So,", "One more thing:", "I'm in a hurry.", "Sorry to bother you.", "My boss wants this today.", "It's me again.",
        "I'm planning something for the weekend.", "Quick question:", "I just got home.", "hm,", "uh,", "Right,", "Alright.", "New task:", "Before I forget:", "I was wondering,",
        "I'm on my phone so keep it short.", "We talked about this yesterday.", "As discussed with the team:", "Good morning!", "I am new here.", "No rush, but", "FYI I'm travelling.",
        "I don't have much time.", "Can't find it myself.", "My colleague asked me for this.", "It's for a friend.", "I forgot my glasses.", "yo", "Hi, I hope you're well.", "Thanks for the help so far.",
        "I'm working on a presentation.", "Not sure you can do this, but", "Let me think...", "First things first.", "Honestly,", "I'm a bit lost.",
    ),
    "de": ("Hallo!", "Guten Tag,", "Kurze Frage:", "Noch etwas:", "Ich habe es eilig.", "Also,", "Hey,", "Bevor ich es vergesse:", "Mein Chef will das wissen."),
    "zh": ("你好，", "请问，", "对了，", "我赶时间。", "还有一件事：", "麻烦你，", "早上好，"),
}  # fmt: skip
AFTER = {
    "en": (
        "Thanks!", "thx", "Thank you so much.", "asap", "if you can", "It's urgent.", "That's all for now.", "Much appreciated!", "ok?", "I need it for a meeting.", "It would help me a lot.",
        "Let me know when it's done.", "No need to explain.", "Cheers", "Just curious.", "My wife asked.", "right now", "Don't ask why.", "I'll wait.", "Keep it short.", "when you have a minute", "for me",
        "I have no idea myself.", "Go!", "Thank you in advance", ":)",
    ),
    "de": ("Danke!", "Vielen Dank im Voraus.", "Es ist dringend.", "Das wäre nett.", "Danke dir", "Ich warte."),
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
