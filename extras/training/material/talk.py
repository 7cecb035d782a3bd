"""Talk without a tool: greetings, capabilities, thanks, questions of knowledge, and impossible requests."""

from __future__ import annotations

GREETINGS = {
    "en": ("Hi", "Hello", "hello!", "Hey there", "Good morning", "Good evening", "hi there", "Hello, who are you?", "hey", "Greetings", "Good afternoon!", "yo", "Hi, how are you?", "Howdy"),
    "de": ("Hallo", "Guten Tag", "Hi", "Servus", "Grüß dich", "Guten Morgen", "Moin", "Hallo, wer bist du?", "Guten Abend"),
    "zh": ("你好", "您好", "早上好", "嗨", "晚上好", "你好，你是谁？", "大家好"),
}  # fmt: skip
GREETED = {
    "en": (
        "Hello! I can help with these tools:",
        "Hi! This is what I can do for you:",
        "Hello! These are the tools I have:",
    ),
    "de": ("Hallo! Das sind meine Werkzeuge:", "Guten Tag! Das kann ich für Sie tun:"),
    "zh": ("你好！我可以使用这些工具：", "您好！这些是我能做的事："),
}
ABILITIES = {
    "en": ("What can you do?", "What tools do you have?", "help", "How can you help me?", "Which tools are there?", "what are you able to do", "List your tools", "What are your abilities?", "Tell me what you can do", "Show me your functions", "who are you and what can you do?", "what do you do?", "Can you help me?"),
    "de": ("Was kannst du?", "Welche Werkzeuge hast du?", "Hilfe", "Wie kannst du mir helfen?", "Was kannst du alles tun?", "Zeig mir deine Funktionen"),
    "zh": ("你能做什么？", "你有哪些工具？", "帮助", "你会什么？", "你可以帮我做什么？", "列出你的工具"),
}  # fmt: skip
ABLE = {
    "en": ("I can use these tools:", "These are my tools:", "This is what I can do:"),
    "de": ("Ich habe diese Werkzeuge:", "Das kann ich:"),
    "zh": ("我有这些工具：", "我可以做这些事："),
}
THANKS = {
    "en": (("Thanks!", "You are welcome."), ("Thank you very much", "You are welcome."), ("great, thanks", "Glad to help."), ("Bye", "Goodbye!"), ("See you later", "See you!"), ("ok", "All right."), ("Perfect", "Glad to help."), ("well done", "Thank you!"), ("never mind", "All right.")),
    "de": (("Danke!", "Gern geschehen."), ("Vielen Dank", "Gern geschehen."), ("Tschüss", "Auf Wiedersehen!"), ("Super", "Freut mich."), ("ok", "In Ordnung.")),
    "zh": (("谢谢", "不客气。"), ("非常感谢", "不客气。"), ("再见", "再见！"), ("好的", "好的。")),
}  # fmt: skip

# answered by the model without the adapter
KNOWLEDGE = {
    "en": (
        "Why do leaves turn red in autumn?", "Who painted the Sistine Chapel?", "How do airplanes fly?", "What is photosynthesis?",
        "Explain gravity to a child", "Who was Cleopatra?", "Why is the sea salty?", "How does a refrigerator work?", "What is a black hole?",
        "Tell me about the Roman Empire", "What is the difference between a crocodile and an alligator?", "Why do we dream?",
        "Who invented the telephone?", "What is the tallest mountain on earth?", "How are rainbows made?", "What is democracy?",
        "Which planet is the largest?", "Who wrote Don Quixote?", "How many legs does a spider have?", "What causes earthquakes?",
        "What is inflation?", "Is a tomato a fruit?", "Why does ice float?", "What language do people speak in Brazil?",
        "How old is the universe?", "What is machine learning?", "Explain recursion", "What is the boiling point of water?",
        "When did the Second World War end?", "Who discovered penicillin?", "How do vaccines work?", "What do bees make?",
        "Why do onions make us cry?", "What is a metaphor?", "Who was the first person on the moon?", "What is the meaning of life?",
        "How do magnets work?", "Name three rivers in Europe", "What is the speed of light?", "Describe the water cycle",
        "who wrote hamlet", "what's the capital of mongolia", "how tall is the eiffel tower", "difference between a virus and a bacterium", "why is grass green",
        "Is Pluto a planet?", "how do i boil an egg", "what does RAM stand for", "Who was Napoleon?", "explain blockchain simply", "how many bones does a human have", "what is the largest ocean",
        "Why do cats purr?", "what's a good way to learn piano", "Can fish sleep?", "who painted the mona lisa", "when was the internet invented", "how does wifi work", "what is stoicism",
        "which is faster, a cheetah or a horse", "What happened in 1989 in Berlin?", "what is an api", "explain what a for loop is", "Who is the author of Faust?", "how do you make bread",
        "what is love", "What is a haiku?", "Which animals hibernate?", "How is glass made?", "What is the theory of evolution?", "Who was Marie Curie?",
    ),
    "de": (
        "Warum ist das Meer salzig?", "Wer hat den Buchdruck erfunden?", "Wie entsteht ein Regenbogen?", "Was ist Demokratie?",
        "Wie funktioniert ein Kühlschrank?", "Wer war Maria Theresia?", "Erkläre mir die Schwerkraft", "Warum schnurren Igel nicht?",
        "Was ist der größte Planet?", "Wie alt ist die Erde?", "Was ist Photosynthese?", "Wer schrieb die Zauberflöte?",
    ),
    "zh": (
        "天为什么会下雨？", "谁发明了造纸术？", "什么是光合作用？", "地球有多大年纪？", "解释一下什么是重力", "李白是谁？",
        "为什么海水是咸的？", "飞机是怎么飞的？", "什么是民主？", "最大的行星是哪一颗？",
    ),
}  # fmt: skip
CREATIVE = {
    "en": (
        "Tell me a joke", "Write a haiku about {topic}", "Tell me a story about {animal}s", "I am bored", "I feel sad today",
        "Write a short poem about {topic}", "What do you think about {topic}?", "Give me a name for my {animal}", "Tell me something funny",
        "Do you like {topic}?", "Make up a riddle", "Write a slogan for a shop that sells {product}s", "How are you feeling?",
        "What should I wear to a wedding?", "Suggest a hobby", "Explain {topic}", "Tell me about {topic}", "I had a great day!",
        "What is your favourite colour?", "Are you a robot?", "Give me a fun fact", "Write a birthday greeting for my sister",
        "write me a limerick", "I can't sleep", "tell me something nice", "what would you do with a million dollars", "do you dream?", "I'm nervous about tomorrow", "are you human", "give me advice for my first job",
        "write a thank-you note for my teacher", "compliment me", "What's your opinion on {topic}?", "explain {topic} in simple words", "write two sentences about {topic}", "I hate mondays", "lol", "you're funny",
        "what's better, cats or dogs?", "invent a superhero", "come up with a band name", "my day was terrible", "How can I learn to cook?", "Let's chat about {topic}", "Sing me a song", "Motivate me",
    ),
    "de": (
        "Erzähl mir einen Witz", "Schreib ein Gedicht über {topic}", "Mir ist langweilig", "Was hältst du von {topic}?", "Erzähl mir etwas über {topic}",
        "Wie geht es dir?", "Bist du ein Roboter?", "Erzähl mir eine Geschichte", "Ich bin heute traurig",
    ),
    "zh": ("给我讲个笑话", "写一首关于{topic}的诗", "我很无聊", "你觉得{topic}怎么样？", "给我讲讲{topic}", "你是机器人吗？", "讲个故事吧", "我今天很难过"),
}  # fmt: skip

# answered honestly: no tool can do it
WISHES = {
    "en": (
        "Book me a haircut for tomorrow", "Order me a pair of shoes", "Call my mother", "Drive me to the station", "Print this page",
        "Turn up the heating", "What is on my calendar today?", "Transfer my savings", "Cancel my gym membership", "Charge my phone",
        "Post this on my blog", "Find me a parking space", "Send flowers to Anna", "Take a photo", "Record my voice", "Open the garage",
        "Renew my passport", "Buy ten shares of NVDA", "Fax the contract to {person}", "Scan my receipts", "Who is calling me?", "Mute the television",
        "Schedule a meeting with {person}", "What's my bank balance?", "How many steps did I walk today?", "Play the next episode",
        "book me a flight to {city}", "order a pizza", "what's the weather like in {city}", "translate this page into Spanish", "wake me up at six", "call a taxi", "turn off the lights", "play some music",
        "buy two tickets to the opera", "text {person} that I'm late", "how much is a bitcoin", "Post a photo of my lunch", "add {person} to my contacts", "find a dentist near me", "set a timer for ten minutes",
        "Send an email to {person}", "lock the front door", "vacuum the living room", "check my blood pressure", "when does the next bus leave", "show my last bank transfers", "make me a sandwich",
        "Feed the fish at noon", "Find my lost keys", "Pay the electricity bill", "Show me pictures of {city}", "Rent a car in {city}",
    ),
    "de": (
        "Buche mir einen Friseurtermin", "Ruf meine Mutter an", "Druck diese Seite aus", "Dreh die Heizung auf", "Schick Blumen an {person}",
        "Mach ein Foto", "Öffne die Garage", "Bezahl die Stromrechnung", "Miete ein Auto in {city}",
    ),
    "zh": ("帮我预约理发", "给我妈妈打电话", "打印这一页", "给{person}送花", "拍张照片", "打开车库", "交电费", "在{city}租一辆车"),
}  # fmt: skip
WISHES_FOR_FILES = {
    "en": (
        "Delete {path}", "rename {path} to {other}", "Move {path} into the archive", "Send {path} to {person}", "zip {path}", "Run {path}", "print {path}", "Upload {path} to the server",
        "make {path} read-only", "email me {path}", "compile {path}", "Convert {path} to PDF", "play {path}", "Copy {path} to {other}", "lock {path} with a password", "Remove the file {path} for good",
        "Undo my last change", "commit my changes", "install numpy", "Turn {path} into a picture", "share {path} with {person}", "restart my computer", "Open {path} in Word", "Remind me of {path} tomorrow at noon by SMS",
    ),
    "de": ("Lösche {path}", "Benenne {path} in {other} um", "Schick {path} an {person}", "Druck {path} aus", "Verschiebe {path} ins Archiv"),
    "zh": ("删除{path}", "把{path}改名为{other}", "把{path}发给{person}", "打印{path}"),
}  # fmt: skip
DECLINED = {
    "en": (
        "None of my tools can do that.", "I have no tool for that.", "Sorry, I cannot do that with the tools I have.",
        "That is not something my tools can do.",
    ),
    "de": ("Dafür habe ich kein Werkzeug.", "Das kann keines meiner Werkzeuge.", "Das kann ich mit meinen Werkzeugen leider nicht."),
    "zh": ("我没有可以做这件事的工具。", "我的工具做不到这一点。", "抱歉，我现有的工具无法做到。"),
}  # fmt: skip

RESULT_SHOWN = {
    "en": ("This is what I found:", "Here is the result:", "This is the result:"),
    "de": ("Das habe ich gefunden:", "Das ist das Ergebnis:"),
    "zh": ("结果如下：", "这是我找到的："),
}
RESULT_SAID = {
    "en": ("The result is {}.", "It is {}."),
    "de": ("Das Ergebnis ist {}.",),
    "zh": ("结果是{}。",),
}
DONE = {"en": ("Done.", "That is done."), "de": ("Erledigt.",), "zh": ("完成了。",)}
FAILED = {
    "en": ("That did not work: {}.", "It failed: {}.", "Sorry, that did not work: {}."),
    "de": ("Das hat nicht geklappt: {}.",),
    "zh": ("没有成功：{}。",),
}
REFUSED = {
    "en": ("That was not allowed, so nothing was done.", "I was not allowed to do that."),
    "de": ("Das wurde nicht erlaubt, deshalb ist nichts geschehen.",),
    "zh": ("这个操作没有被允许，所以什么也没有做。",),
}
JOINED = {
    "en": (
        "{} and {low}",
        "{} Then {low}",
        "{}, and also {low}",
        "{}; {low}",
        "{} Also: {}",
        "First: {low1} Second: {low}",
    ),
    "de": ("{} Und: {}", "{} Danach: {}", "{}; {}"),
    "zh": ("{}，然后{}", "{}，还有{}", "先{}，再{}"),
}
EXTRAS = (
    "Be brief.", "You are a helpful assistant.", "You work for a small shop in Graz.", "Answer in the language of the person.",
    "You are the assistant of a travel agency. Be polite.", "The workspace is a Python project.", "Never delete anything without asking.",
    "You are Nora, an assistant.", "Use the tools.",
)  # fmt: skip
