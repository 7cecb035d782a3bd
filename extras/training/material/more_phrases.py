"""More ways to ask for the tools that come with Dragoman, as people type them."""

from __future__ import annotations

MORE: dict[str, dict[str, tuple[str, ...]]] = {
    "time": {
        "en": ("what time is it rn", "what day is it", "is it friday already?", "what's the current date and time", "time?", "date today?", "which weekday do we have", "how late is it now", "Can you tell me what day of the week it is?", "Got the time?", "what's the hour", "which month is it", "what year is it", "Today's date, please.", "check the clock"),
        "de": ("Uhrzeit?", "Welches Datum haben wir?", "Ist heute Freitag?", "Sag mir, wie spät es ist", "Welchen Tag haben wir heute?"),
        "zh": ("几点了？", "今天是几月几号？", "现在的日期和时间", "今天是周几"),
    },
    "time_there": {
        "en": ("what time is it in {place} rn", "time {place}", "what's the clock say in {place}", "is it already tomorrow in {place}?", "I want to call someone in {place}, how late is it there?", "Is it too late to call {place}?", "{place} time please", "what hour is it over in {place}", "whats the date in {place}", "Are people in {place} awake now?", "now in {place}?", "tell me how late it is over there in {place}"),
        "de": ("Wie spät haben sie es in {place}?", "Ist es in {place} schon Nacht?", "Zeit in {place}"),
        "zh": ("{place}几点了", "{place}现在是白天吗？", "{place}今天几号？"),
    },
    "todo": {
        "en": ("remind me to {items}", "i need to {items} today", "put this on my list: {items}", "to do: {items}", "new todos: {items}", "don't let me forget to {items}", "My list for today: {items}", "please note these tasks: {items}", "I still have to {items}", "list of things to do: {items}", "jot down that i must {items}", "track these for me: {items}", "plan: {items}", "Add these to the list - {items}"),
        "de": ("Ich muss noch {items}, merk dir das", "Auf die Liste: {items}", "Erinnere mich: {items}", "Heute zu tun: {items}"),
        "zh": ("提醒我{items}", "我今天要{items}", "把这些列入清单：{items}"),
    },
    "todo_done": {
        "en": ("{items}: done", "check off {items}", "set {items} to done", "i finished this: {items}", "{items} is finished, update the list"),
        "de": ("{items}: fertig", "Setze {items} auf erledigt"),
        "zh": ("{items}做完了", "勾掉{items}"),
    },
    "todo_doing": {"en": ("working on {items} right now", "{items}: in progress", "I've started this: {items}"), "de": ("{items}: in Arbeit",), "zh": ("{items}进行中",)},
    "list_here": {
        "en": ("whats here", "show all files", "what files do i have", "dir", "what do we have here?", "give me a listing of this folder", "which files and folders are in the project?", "what's in my workspace", "show me everything in the root folder", "let me see the files", "what is in here", "List the contents of the current directory", "top-level files?", "show project files"),
        "de": ("Was ist hier alles?", "Zeig alle Dateien", "Inhalt des Projekts"),
        "zh": ("看看有什么文件", "当前文件夹里有什么", "有哪些文件"),
    },
    "list": {
        "en": ("whats in {folder}", "show {folder}", "what files are inside the {folder} folder", "list {folder}", "dir {folder}", "show the contents of {folder}/", "what's inside the directory {folder}?", "give me a listing of {folder}", "open the folder {folder}", "what do we keep in {folder}", "can you check what's in {folder}", "go through the {folder} directory and tell me what's there", "files under {folder}?"),
        "de": ("Inhalt von {folder}", "Was liegt im Ordner {folder}?", "Schau in {folder}"),
        "zh": ("看看{folder}里有什么", "{folder}文件夹里有哪些文件？", "打开{folder}目录"),
    },
    "read": {
        "en": ("whats in {path}", "show {path}", "what's written in {path}", "let me see {path}", "give me the content of {path}", "what is {path} about", "view {path}", "tell me what {path} says", "contents of {path}", "read me {path} please", "I want to know what's in {path}", "open the file {path} and show it to me", "what does the file {path} contain?", "check {path}", "pull up {path}", "can you read out {path}", "{path}?", "look inside {path}", "get {path}"),
        "de": ("Inhalt von {path}", "Was enthält {path}?", "Gib {path} aus", "Schau in die Datei {path}"),
        "zh": ("看看{path}", "{path}的内容是什么", "{path}里有什么", "给我看{path}"),
    },
    "read_first": {
        "en": ("first {count} lines of {path}", "top {count} lines of {path}", "just the first {count} lines of {path} please", "show {path}, but only {count} lines", "how does {path} begin? {count} lines are enough"),
        "de": ("Die ersten {count} Zeilen von {path}",), "zh": ("{path}前{count}行",),
    },
    "read_range": {
        "en": ("lines {first}-{last} of {path}", "show me lines {first}-{last} of {path}", "lines {first} through {last} in {path}", "what's on lines {first} to {last} of {path}", "{path} lines {first}-{last}", "between line {first} and {last}, what does {path} say?"),
        "de": ("Zeilen {first}-{last} von {path}",), "zh": ("{path}第{first}-{last}行",),
    },
    "read_from": {"en": ("{path} from line {first}", "show everything after line {first} of {path}, that line included", "continue reading {path} at line {first}"), "de": ("{path} ab Zeile {first}",), "zh": ("{path}从第{first}行起",)},
    "write": {
        "en": ("create a file {path} with {text}", "write {text} into a file called {path}", "save {text} to {path}", "make {path} and put {text} in it", "new file {path} with content {text}", "{path} should contain {text}", "write a file named {path} with {text} in it", "store the text {text} in {path}", "dump {text} into {path}", "I need a file {path} with the words {text}", "please put {text} in a new file {path}"),
        "de": ("Neue Datei {path} mit {text}", "Speichere den Text {text} unter {path}"), "zh": ("新建{path}，写上{text}", "把{text}存到{path}"),
    },
    "write_open": {
        "en": ("Write to {path}: {text}", "save this to {path}: {text}", "create {path} with the following content: {text}", "put this in {path}: {text}", "new file {path}: {text}", "make me a note called {path}: {text}", "{path} should say: {text}", "Create a file named {path} containing: {text}", "write the following to {path}: {text}", "save in {path}: {text}", "file {path}, content: {text}", "please store this under {path}: {text}", "Make a text file {path} that says {text}"),
        "de": ("Schreib in {path}: {text}", "Speichere das in {path}: {text}", "Neue Datei {path}: {text}"), "zh": ("写入{path}：{text}", "保存到{path}：{text}", "新建文件{path}，内容：{text}"),
    },
    "write_empty": {"en": ("create an empty file {path}", "touch {path}", "make a new empty file called {path}", "I need an empty {path}"), "de": ("Lege eine leere Datei {path} an",), "zh": ("新建空文件{path}",)},
    "write_lines": {
        "en": ("save {items} in {path}, each on its own line", "put {items} into {path} as separate lines", "make a list file {path} with {items}, one per line"),
        "de": ("{items} in {path}, eine pro Zeile",), "zh": ("{path}里每行写一个：{items}",),
    },
    "edit": {
        "en": ("in {path} change {old} to {new}", "replace {old} with {new} in {path}", "{path}: {old} -> {new}", "rename {old} to {new} in {path}", "fix {path}: it should be {new}, not {old}", "substitute {new} for {old} in {path}", "please update {path}, {old} must become {new}", "correct {old} to {new} in the file {path}", "there's a mistake in {path}: {old} should read {new}", "swap out {old} in {path}, put {new} there"),
        "de": ("In {path} soll statt {old} {new} stehen", "Tausche in {path} {old} gegen {new}"), "zh": ("{path}中的{old}应该是{new}", "将{path}里的{old}替换为{new}"),
    },
    "glob": {
        "en": ("find every .{ending} file", "all {kind} files", "show me where the {kind} files are", "any {kind} files?", "find *.{ending} everywhere", "which files end in .{ending}?", "list all .{ending} files", "do we have {kind} files", "give me all the {kind} files in the project", "find files with the extension {ending}"),
        "de": ("Alle {kind}-Dateien", "Suche .{ending}-Dateien"), "zh": ("所有的{kind}文件", "查找.{ending}文件"),
    },
    "glob_in": {"en": ("all {kind} files in {folder}", "find .{ending} files under {folder}", "are there {kind} files in {folder}?", "list the {kind} files inside {folder}"), "de": ("Alle {kind}-Dateien unter {folder}",), "zh": ("{folder}下的{kind}文件",)},
    "glob_name": {
        "en": ("where is {name}", "is there a file called {name}?", "find the file {name}", "locate {name}", "in which folder is {name}?", "do we have a {name} somewhere"),
        "de": ("Wo ist {name}?", "Gibt es eine Datei {name}?"), "zh": ("{name}在哪里？", "找到文件{name}"),
    },
    "glob_part": {
        "en": ("files with {word} in the name", "which files have {word} in their name?", "find all files whose name contains {word}", "anything named like {word}?"),
        "de": ("Dateien mit {word} im Namen",), "zh": ("文件名里有{word}的文件",),
    },
    "grep": {
        "en": ("where do we use {pattern}", "search all files for {pattern}", "find {pattern}", "which file contains {pattern}?", "look for {pattern}", "is {pattern} mentioned anywhere?", "grep for {pattern}", "in which files does {pattern} appear", "find the text {pattern}", "search {pattern} in the project", "locate the string {pattern}", "show me all lines containing {pattern}", "does anything mention {pattern}", "find all occurrences of {pattern}"),
        "de": ("Finde {pattern}", "Durchsuche alles nach {pattern}", "Wo steht {pattern}?"), "zh": ("查找{pattern}", "哪里用到了{pattern}", "{pattern}出现在哪些文件里"),
    },
    "grep_in": {
        "en": ("look for {pattern} in {folder}", "search {folder} for {pattern}", "find {pattern} under {folder}", "is {pattern} anywhere in the {folder} folder?", "which files in {folder} contain {pattern}", "check {folder} for {pattern}", "in {folder}, find all lines with {pattern}"),
        "de": ("Durchsuche {folder} nach {pattern}", "Steht in {folder} irgendwo {pattern}?"), "zh": ("{folder}里哪里有{pattern}", "在{folder}中查找{pattern}"),
    },
    "grep_kind": {
        "en": ("look for {pattern} in all {kind} files", "search .{ending} files for {pattern}", "find {pattern} but only in {kind} files", "grep {pattern} in *.{ending}", "which .{ending} files contain {pattern}"),
        "de": ("Finde {pattern} in allen {kind}-Dateien",), "zh": ("在所有{kind}文件里找{pattern}",),
    },
    "grep_both": {
        "en": ("search the {kind} files in {folder} for {pattern}", "look for {pattern} in all {kind} files under {folder}", "find {pattern} in the .{ending} files of {folder}"),
        "de": ("Suche in den {kind}-Dateien unter {folder} nach {pattern}",), "zh": ("在{folder}的{kind}文件中搜索{pattern}",),
    },
    "grep_case": {"en": ("case-insensitive search for {pattern}", "find {pattern}, no matter the case", "search {pattern} (ignore case)", "look for {pattern}, upper or lower case doesn't matter"), "de": ("Finde {pattern}, egal ob groß oder klein",), "zh": ("忽略大小写查找{pattern}",)},
    "shell": {"en": ("run `{command}`", "execute the command {command} for me", "terminal: {command}", "can you run {command}", "$ {command}"), "de": ("Führ mal {command} aus",), "zh": ("在终端运行{command}",)},
    "fetch": {
        "en": ("fetch {url} and tell me what it says", "whats on {url}", "get {url}", "load {url}", "check out {url}", "visit {url}", "go to {url} and read it", "what is this page about: {url}", "read {url} for me", "show me the content of {url}", "can you open {url} and summarise it?", "grab the page {url}", "{url}", "I want to know what's at {url}", "tl;dr of {url}", "is {url} up?"),
        "de": ("Was ist auf {url} zu sehen?", "Lade {url}", "Fasse {url} zusammen"), "zh": ("看看{url}", "{url}讲了什么", "总结一下{url}"),
    },
}  # fmt: skip

VERBS = [
    "buy",
    "call",
    "clean",
    "fix",
    "order",
    "return",
    "book",
    "cancel",
    "renew",
    "write",
    "pack",
    "iron",
    "sell",
    "print",
    "paint",
    "pick up",
    "sign",
    "post",
    "pay",
    "email",
    "feed",
    "walk",
    "visit",
    "mow",
    "sort",
    "bake",
    "check",
    "read",
    "update",
    "measure",
]
OBJECTS = ["the dentist", "a birthday card", "the gutters", "new shoes", "the tax form", "the neighbours", "the car insurance", "the spare room", "dog food", "the bike", "the holiday photos", "tomatoes", "Aunt Vera", "the lawn", "the boiler", "the kids' lunch", "the landlord", "two train tickets", "the bathroom mirror", "the slides", "winter tyres", "a present for Leo", "the fire alarm", "the fridge", "the report", "stamps", "the printer", "the vet", "flour and sugar", "the roses"]  # fmt: skip
