"""How people ask for the tools that come with Dragoman."""

from __future__ import annotations

REQUESTS = {
    "time": {
        "en": ("What time is it?", "What's the time?", "Which day is it today?", "What's today's date?", "Tell me the date", "How late is it?", "Do you have the time?", "What weekday is it?", "current time please", "Is it Monday today?", "what's the date"),
        "de": ("Wie spät ist es?", "Welcher Tag ist heute?", "Wie viel Uhr ist es?", "Was ist das heutige Datum?", "Welchen Wochentag haben wir?"),
        "zh": ("现在几点？", "今天几号？", "今天星期几？", "现在是什么时间？", "告诉我日期"),
    },
    "time_there": {
        "en": ("What time is it in {place}?", "Time in {place}?", "How late is it in {place} now?", "What's the local time in {place}?", "Which day is it in {place}?", "current time {place}", "Tell me the time in {place}", "Is it night in {place}?", "my friend lives in {place}, what time does she have?"),
        "de": ("Wie spät ist es in {place}?", "Uhrzeit in {place}?", "Wie viel Uhr ist es gerade in {place}?", "Welcher Tag ist in {place}?"),
        "zh": ("{place}现在几点？", "{place}的时间是多少？", "{place}现在是什么时候？", "告诉我{place}的当地时间"),
    },
    "todo": {
        "en": ("Add {items} to my todo list", "Put {items} on the list", "Todo: {items}", "Make a todo list: {items}", "I have to {items}, note that down", "Remember that I need to {items}", "My tasks for today are: {items}", "Start a list of what is to be done: {items}", "Add a task: {items}"),
        "de": ("Setz {items} auf meine Aufgabenliste", "Todo: {items}", "Notiere als Aufgaben: {items}", "Schreib auf die Liste: {items}"),
        "zh": ("把{items}加到待办清单", "待办：{items}", "记一下要做的事：{items}", "新建待办清单：{items}"),
    },
    "todo_done": {
        "en": ("Mark {items} as done", "I am finished with this: {items}", "Tick off {items}"),
        "de": ("Hake {items} ab", "{items} ist erledigt"),
        "zh": ("把{items}标记为完成", "{items}已经完成了"),
    },
    "todo_doing": {
        "en": ("I am doing this now: {items}", "Mark {items} as in progress"),
        "de": ("Ich bin gerade dabei: {items}",),
        "zh": ("我正在{items}",),
    },
    "list_here": {
        "en": ("List the files", "What files are here?", "Show me the folder", "What's in this directory?", "ls", "Which files do we have?", "Show the workspace", "Show me what is in the current folder", "list everything here", "What is in the workspace?"),
        "de": ("Welche Dateien gibt es hier?", "Zeig mir den Ordner", "Was liegt in diesem Verzeichnis?", "Liste die Dateien auf"),
        "zh": ("这里有哪些文件？", "列出文件", "显示当前目录", "工作区里有什么？"),
    },
    "list": {
        "en": ("What's in {folder}?", "List the folder {folder}", "Show me the files in {folder}", "ls {folder}", "Which files are in {folder}?", "What does the directory {folder} contain?", "Look into {folder}", "contents of the {folder} folder", "Is there anything in {folder}?"),
        "de": ("Was ist in {folder}?", "Zeig mir die Dateien in {folder}", "Liste den Ordner {folder} auf", "Welche Dateien liegen in {folder}?"),
        "zh": ("{folder}里有什么？", "列出{folder}中的文件", "显示{folder}目录的内容"),
    },
    "read": {
        "en": ("Read {path}", "Show me {path}", "What's in the file {path}?", "Open {path}", "cat {path}", "What does {path} say?", "Summarise {path}", "Can I see {path}?", "Print the contents of {path}", "Have a look at {path}", "Tell me what is written in {path}", "explain {path} to me", "Display {path}"),
        "de": ("Lies {path}", "Zeig mir {path}", "Was steht in {path}?", "Öffne {path}", "Fasse {path} zusammen"),
        "zh": ("读一下{path}", "打开{path}", "{path}里写了什么？", "显示{path}的内容", "总结{path}"),
    },
    "read_first": {
        "en": ("Show me the first {count} lines of {path}", "Read {count} lines of {path}", "head of {path}, {count} lines"),
        "de": ("Zeig mir die ersten {count} Zeilen von {path}",),
        "zh": ("显示{path}的前{count}行",),
    },
    "read_range": {
        "en": ("Show lines {first} to {last} of {path}", "Read {path} from line {first} to {last}"),
        "de": ("Zeig mir Zeile {first} bis {last} von {path}",),
        "zh": ("显示{path}的第{first}到{last}行",),
    },
    "read_from": {
        "en": ("Read {path} from line {first} on", "Show me {path}, starting at line {first}"),
        "de": ("Lies {path} ab Zeile {first}",),
        "zh": ("从第{first}行开始读{path}",),
    },
    "write": {
        "en": ("Write {text} to {path}", "Save {text} in {path}", "Create {path} with the text {text}", "Put {text} into {path}", "Make a file {path} that says {text}", "Store {text} as {path}", "Create a file called {path} containing {text}", "Write a new file {path}: {text}", "I want {path} to contain {text}"),
        "de": ("Schreibe {text} in {path}", "Speichere {text} in {path}", "Erstelle {path} mit dem Text {text}", "Lege eine Datei {path} an, in der {text} steht"),
        "zh": ("把{text}写入{path}", "将{text}保存到{path}", "创建文件{path}，内容为{text}"),
    },
    "write_lines": {
        "en": ("Write {items} to {path}, one per line", "Create {path} with the lines {items}"),
        "de": ("Schreibe {items} in {path}, je eine Zeile",),
        "zh": ("把{items}写入{path}，每行一个",),
    },
    "edit": {
        "en": ("Replace {old} by {new} in {path}", "Change {old} to {new} in {path}", "In {path}, replace {old} with {new}", "Swap {old} for {new} in {path}", "Edit {path}: {old} should be {new}", "{path} should say {new} instead of {old}"),
        "de": ("Ersetze in {path} {old} durch {new}", "Ändere {old} in {path} zu {new}"),
        "zh": ("把{path}里的{old}改成{new}", "在{path}中用{new}替换{old}"),
    },
    "glob": {
        "en": ("Find all {kind} files", "Which {kind} files are there?", "Where are the {kind} files?", "List every {kind} file", "Look for {kind} files in all folders"),
        "de": ("Finde alle {kind}-Dateien", "Welche {kind}-Dateien gibt es?", "Wo sind die {kind}-Dateien?"),
        "zh": ("找出所有{kind}文件", "有哪些{kind}文件？"),
    },
    "glob_in": {
        "en": ("Find all {kind} files in {folder}", "Which {kind} files are below {folder}?"),
        "de": ("Finde alle {kind}-Dateien in {folder}",),
        "zh": ("在{folder}中找出所有{kind}文件",),
    },
    "glob_pattern": {
        "en": ("Find files that match {pattern}", "Which files are called {pattern}?", "glob {pattern}"),
        "de": ("Finde Dateien nach dem Muster {pattern}",),
        "zh": ("查找匹配{pattern}的文件",),
    },
    "grep": {
        "en": ("Search for {pattern}", "Where does {pattern} occur?", "grep {pattern}", "Find lines with {pattern}", "Which files mention {pattern}?", "Find every {pattern} in the files", "Look for {pattern} in the code", "Where is {pattern} used?", "Search the files for {pattern}"),
        "de": ("Suche nach {pattern}", "Wo kommt {pattern} vor?", "In welchen Dateien steht {pattern}?"),
        "zh": ("搜索{pattern}", "哪些文件里有{pattern}？", "在文件中查找{pattern}"),
    },
    "grep_in": {
        "en": ("Search for {pattern} in {folder}", "Find lines with {pattern} in the folder {folder}", "grep {pattern} in {folder}", "Where in {folder} is {pattern}?"),
        "de": ("Suche in {folder} nach {pattern}",),
        "zh": ("在{folder}里搜索{pattern}",),
    },
    "grep_kind": {
        "en": ("Search the {kind} files for {pattern}", "Find {pattern} in {kind} files", "Which {kind} files mention {pattern}?"),
        "de": ("Suche in den {kind}-Dateien nach {pattern}",),
        "zh": ("在{kind}文件中搜索{pattern}",),
    },
    "grep_case": {
        "en": ("Search for {pattern}, ignoring case", "Find {pattern} in upper or lower case"),
        "de": ("Suche nach {pattern}, Groß- und Kleinschreibung egal",),
        "zh": ("搜索{pattern}，不区分大小写",),
    },
    "shell": {
        "en": ("Run {command}", "Execute {command}", "Run the command {command}", "In the shell: {command}", "Please run {command}", "What does {command} print?"),
        "de": ("Führe {command} aus", "Starte {command}"),
        "zh": ("运行{command}", "执行命令{command}"),
    },
    "fetch": {
        "en": ("Open {url}", "What's on {url}?", "Read the page {url}", "Fetch {url}", "Get me the text of {url}", "Summarise {url}", "Look at {url}", "What does the page {url} say?", "download {url}"),
        "de": ("Öffne {url}", "Was steht auf {url}?", "Lies die Seite {url}", "Hol mir {url}"),
        "zh": ("打开{url}", "{url}上写了什么？", "读取网页{url}", "抓取{url}"),
    },
}  # fmt: skip

KINDS_OF_FILES = {
    "en": (("Python", "py"), ("Markdown", "md"), ("JSON", "json"), ("text", "txt"), ("CSV", "csv"), ("TypeScript", "ts"), ("HTML", "html"), ("YAML", "yaml"), ("log", "log"), ("Rust", "rs"), ("SQL", "sql"), (".toml", "toml"), ("JavaScript", "js"), (".cfg", "cfg")),
    "de": (("Python", "py"), ("Markdown", "md"), ("JSON", "json"), ("Text", "txt"), ("CSV", "csv"), ("Log", "log"), ("HTML", "html")),
    "zh": (("Python", "py"), ("Markdown", "md"), ("JSON", "json"), ("文本", "txt"), ("CSV", "csv"), ("日志", "log")),
}  # fmt: skip

QUESTIONS: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "en": (
        ("Ask me whether I want tea or coffee", "Do you want tea or coffee?", ("tea", "coffee")),
        ("Ask me for my name", "What is your name?", ()),
        (
            "Ask me which size I need: small, medium or large",
            "Which size do you need?",
            ("small", "medium", "large"),
        ),
        ("Ask me how many guests will come", "How many guests will come?", ()),
        ("Ask me if the report is ready", "Is the report ready?", ("yes", "no")),
        ("Let me choose between red, green and blue", "Which one do you choose?", ("red", "green", "blue")),
        ("Ask me where I want to go", "Where do you want to go?", ()),
        ("Ask me what I would like for dinner", "What would you like for dinner?", ()),
        ("Please ask me which day suits me, Monday or Friday", "Which day suits you?", ("Monday", "Friday")),
        ("Ask me what the title should be", "What should the title be?", ()),
        ("Ask me whether to go on", "Shall I go on?", ("yes", "no")),
        ("Put a question to me: what is my favourite song?", "What is your favourite song?", ()),
    ),
    "de": (
        ("Frag mich, ob ich Tee oder Kaffee will", "Wollen Sie Tee oder Kaffee?", ("Tee", "Kaffee")),
        ("Frag mich nach meinem Namen", "Wie heißen Sie?", ()),
        ("Frag mich, welche Farbe ich will: rot oder blau", "Welche Farbe wollen Sie?", ("rot", "blau")),
    ),
    "zh": (
        ("问我要茶还是咖啡", "您要茶还是咖啡？", ("茶", "咖啡")),
        ("问我的名字", "您叫什么名字？", ()),
        ("问我喜欢哪种颜色：红色还是蓝色", "您喜欢哪种颜色？", ("红色", "蓝色")),
    ),
}
