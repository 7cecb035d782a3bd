/** Made from the server's description by `make page-types`: change that, not this. */

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description An agent as in the settings. Omitted fields use the defaults. */
        AgentBody: {
            /**
             * @description its strengths; other agents read this
             * @default
             */
            description?: string;
            /**
             * @description after the general system prompt
             * @default
             */
            prompt?: string;
            /** @example ollama/qwen3 */
            model?: string | null;
            /** @description groups and tools; without it, all of them */
            tools?: string[] | null;
            /**
             * @example [
             *       "files.read",
             *       "shell:git *"
             *     ]
             */
            allow?: string[];
            /**
             * @example [
             *       "files.read",
             *       "shell:git *"
             *     ]
             */
            ask?: string[];
            /**
             * @example [
             *       "files.read",
             *       "shell:git *"
             *     ]
             */
            deny?: string[];
            /** @description that can use it; null: as before */
            teams?: string[] | null;
        };
        AgentCall: {
            id: string;
            function: components["schemas"]["CalledFunction"];
        };
        AgentList: {
            items: components["schemas"]["AgentView"][];
        };
        AgentMessage: {
            /** @default  */
            id?: string;
            /** @enum {string} */
            role: "developer" | "system" | "assistant" | "user" | "tool" | "activity" | "reasoning";
            content?: components["schemas"]["JsonValue"];
            /** @default  */
            toolCallId?: string;
            toolCalls?: components["schemas"]["AgentCall"][];
            error?: string | null;
            metadata?: components["schemas"]["JsonValue"];
        } & {
            [key: string]: unknown;
        };
        AgentSetup: {
            name: string;
            description: string;
            prompt: string;
            model: string | null;
            tools: string[] | null;
            rules: components["schemas"]["Rule-Output"][];
            origin: string | null;
            own: boolean;
            teams: string[];
        };
        AgentSetupList: {
            file: string;
            shared: boolean;
            agents: components["schemas"]["AgentSetup"][];
        };
        AgentTool: {
            name: string;
            /** @default  */
            description?: string;
            parameters?: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
        };
        AgentView: {
            name: string;
            description: string;
            model: string | null;
            tools: string[] | null;
        };
        /** @description A user's decision. The functions below make one. */
        Answer: {
            /** @enum {string} */
            verdict: "allow" | "reject" | "stop" | "release" | "withhold" | "reply";
            /**
             * @default once
             * @enum {string}
             */
            scope: "once" | "conversation" | "hour" | "always";
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            /** @default [] */
            rules: components["schemas"]["Rule-Output"][];
            reason: string | null;
            value: components["schemas"]["JsonValue"];
            hash: string | null;
            by: string | null;
            /** @default 0 */
            at: number;
            /** @default false */
            lent: boolean;
        };
        /** @description An answer to a case. `diverges` is the first call that differs from the recorded ones. */
        AnswerLine: {
            variant: string;
            repeat: number;
            passed: boolean | null;
            answered: components["schemas"]["Answered"];
            met: components["schemas"]["Met"][];
            /** @default  */
            skipped: string;
            diverges: number | null;
        };
        /** @description The result of a turn: answer, calls and usage. `seconds` counts only the time of the model. */
        Answered: {
            /** @default  */
            model: string;
            /** @default  */
            text: string;
            /** @default [] */
            calls: components["schemas"]["MadeCall"][];
            /** @default 0 */
            rounds: number;
            /** @default 0 */
            input: number;
            /** @default 0 */
            output: number;
            cost: number | null;
            /** @default 0 */
            seconds: number;
            /** @default  */
            error: string;
        };
        Approval: {
            /** @default  */
            id?: string;
            approved?: boolean | null;
            reason?: string | null;
        };
        /** @description A line of the audit log: when and from where a user did what to which object. */
        AuditEntry: {
            at: number;
            action: string;
            /** @default  */
            person: string;
            /** @default  */
            address: string;
            /** @default  */
            object: string;
            details: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /** @default 0 */
            seq: number;
        };
        AuditLog: {
            items: components["schemas"]["AuditEntry"][];
        };
        /**
         * @description Why a call ran: `kind` is rule, grant, answer or repeated.
         *
         *     `origin` is the file and line, or the grant.
         */
        Because: {
            kind: string;
            text: string;
            origin: string | null;
            by: string | null;
            at: number | null;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        Begun: {
            turn: string;
            message: string | null;
        };
        /** @description A user answered the question, in this client or another. */
        CallAnswered: {
            call: string;
            question: string;
            verdict: string;
            /** @default 0 */
            seq: number;
            /**
             * @default call.answered
             * @constant
             */
            type: "call.answered";
        };
        /** @description Dragoman asks a user: about the call, about its result, or for the tool. */
        CallAsked: {
            call: string;
            question: string;
            kind: string;
            tool: string;
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            text: string;
            /** @default rule */
            because: string;
            rules: string[];
            choices: string[];
            schema: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /** @default  */
            diff: string;
            told: string[];
            /** @default false */
            in_parts: boolean;
            /** @default false */
            free: boolean;
            /** @default 0 */
            seq: number;
            /**
             * @default call.asked
             * @constant
             */
            type: "call.asked";
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        CallEnd: {
            call: string;
            tool: string;
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            state: components["schemas"]["CallState"];
            result: components["schemas"]["ToolResult"];
            original: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            at: number | null;
            /** @default 0 */
            seq: number;
            /**
             * @default call.end
             * @constant
             */
            type: "call.end";
        };
        /** @description A call of a turn. */
        CallInfo: {
            id: string;
            tool: string;
            state: string;
        };
        /** @description A chunk of the arguments, for display only. */
        CallInputDelta: {
            call: string;
            text: string;
            /** @default 0 */
            seq: number;
            /**
             * @default call.input.delta
             * @constant
             */
            type: "call.input.delta";
        };
        /** @description The arguments are complete: an object, or the `raw` text with its error. */
        CallInputEnd: {
            call: string;
            tool: string;
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            raw: string | null;
            signature: string | null;
            /** @default 0 */
            seq: number;
            /**
             * @default call.input.end
             * @constant
             */
            type: "call.input.end";
        };
        /**
         * @description The input of a call starts.
         *
         *     `format` names the text format in which the model wrote the call. `guessed` is true if the model is not
         *     known to write it, so that the call needs approval.
         */
        CallInputStart: {
            call: string;
            tool: string;
            provider_id: string | null;
            /** @default  */
            format: string;
            /** @default false */
            guessed: boolean;
            /** @default 0 */
            seq: number;
            /**
             * @default call.input.start
             * @constant
             */
            type: "call.input.start";
        };
        CallProgress: {
            call: string;
            value: components["schemas"]["JsonValue"];
            /** @default 0 */
            seq: number;
            /**
             * @default call.progress
             * @constant
             */
            type: "call.progress";
        };
        CallStart: {
            call: string;
            tool: string;
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /** @default false */
            client: boolean;
            at: number | null;
            /** @default 0 */
            seq: number;
            /**
             * @default call.start
             * @constant
             */
            type: "call.start";
        };
        /**
         * @description The state of a call. From COMPLETED on, a call is settled and has its one result.
         * @enum {string}
         */
        CallState: "pending" | "asked" | "running" | "reviewing" | "completed" | "failed" | "rejected" | "withheld" | "skipped" | "cancelled" | "interrupted";
        /** @description A call from the reply that made it to its result. */
        CallTrace: {
            id: string;
            tool: string;
            made: number;
            /** @default pending */
            state: string;
            /** @default false */
            client: boolean;
            ended: number | null;
            because: components["schemas"]["Because"] | null;
            limit: string | null;
            opened: string | null;
            parent: string | null;
            usage: components["schemas"]["Usage"] | null;
            /** @default false */
            copied: boolean;
            runs: components["schemas"]["ToolRun"][];
            waits: components["schemas"]["Wait"][];
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        CalledFunction: {
            name: string;
            /** @default  */
            arguments?: string;
        };
        Cancel: {
            /** @default  */
            reason?: string;
        };
        Cancelled: {
            cancelled: boolean;
        };
        /** @description A case, and how many of its answers passed, by variant. */
        CaseLine: {
            id: string;
            question: string;
            recorded: boolean | null;
            passed: number[];
            total: number[];
            changed: (("better" | "worse") | null)[];
        };
        ChosenHunk: {
            /** @description its place in the diff, counted from 0 */
            hunk: number;
            /** @description in place of the hunk's new side, if edited */
            text?: string | null;
        };
        ChosenHunks: {
            /**
             * @example [
             *       {
             *         "hunk": 0
             *       },
             *       {
             *         "hunk": 2
             *       }
             *     ]
             */
            hunks: components["schemas"]["ChosenHunk"][];
        };
        /**
         * @description A source that a text names: a URL, a provider's file, or a passage of an attachment.
         *
         *     `start` and `end` count characters of the text that relies on it, if the provider gives them.
         */
        "Citation-Input": {
            url?: string | null;
            title?: string | null;
            quote?: string | null;
            start?: number | null;
            end?: number | null;
            opaque?: components["schemas"]["JsonValue"];
        };
        /**
         * @description A source that a text names: a URL, a provider's file, or a passage of an attachment.
         *
         *     `start` and `end` count characters of the text that relies on it, if the provider gives them.
         */
        "Citation-Output": {
            url: string | null;
            title: string | null;
            quote: string | null;
            start: number | null;
            end: number | null;
            opaque: components["schemas"]["JsonValue"];
        };
        /** @description A tool as assistant-ui describes it, or with the SDK's field name for the schema. */
        ClientTool: {
            /** @default  */
            description?: string;
            parameters?: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            inputSchema?: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
        };
        CompactionTrace: {
            reason: string;
            started: number;
            ended: number | null;
            usage: components["schemas"]["Usage"] | null;
            error: string | null;
        };
        ConfirmedServer: {
            /** @example files */
            name: string;
            /** @description the program, without its arguments */
            command?: string | null;
            args?: string[];
            /** @description values that look like secrets are stored like keys */
            env?: {
                [key: string]: string;
            };
            cwd?: string | null;
            /** @description its address, if it is not a program */
            url?: string | null;
            /** @description values that look like secrets are stored like keys */
            headers?: {
                [key: string]: string;
            };
            /**
             * @description of an older server
             * @default false
             */
            sse?: boolean;
            /**
             * @description it wants a sign-in in the browser
             * @default false
             */
            oauth?: boolean;
            /** @description from the plan that you saw */
            confirm: string;
        };
        ContextEntry: {
            /** @default  */
            description?: string;
            value?: components["schemas"]["JsonValue"];
        };
        /**
         * @description One share of the context. `name` is its source: a prompt layer or a tool. `tokens` are estimated by
         *     length.
         */
        ContextShare: {
            /** @enum {string} */
            kind: "prompt" | "tools" | "person" | "answers" | "reasoning" | "calls" | "files" | "summary";
            name: string;
            tokens: number;
        };
        /**
         * @description The context use of a turn's last request, before plugins changed it.
         *
         *     `counted` is true if the provider counted `used`, and false if it is an estimate. `context` is None if the
         *     model's limit is unknown.
         */
        ContextUse: {
            turn: string;
            model: string;
            context: number | null;
            used: number;
            counted: boolean;
            shares: components["schemas"]["ContextShare"][];
        };
        /** @description Changes to a conversation. In `settings`, null removes a setting. */
        ConversationChange: {
            title?: string | null;
            settings?: components["schemas"]["ConversationSettings"] | null;
            /** @description a message: look at its branch */
            leaf?: string | null;
            /** @description in reach, and kept whatever the retention */
            pinned?: boolean | null;
            /** @description out of the list, until one writes in it */
            archived?: boolean | null;
            tags?: string[] | null;
        };
        /** @description A line of the user's conversation list is new or has changed. */
        ConversationChanged: {
            id: string;
            title: string | null;
            leaf: string | null;
            settings: {
                model?: string;
                agent?: string;
                /** @enum {string} */
                mode?: "auto" | "ask" | "manual" | "off";
                system?: string;
                options?: {
                    [key: string]: unknown;
                };
                tools?: {
                    [key: string]: boolean;
                };
                review?: ("never" | "on_error" | "always") | {
                    [key: string]: "never" | "on_error" | "always";
                };
                max_rounds?: number;
                continuations?: number;
                history?: number;
                private?: {
                    [key: string]: string;
                };
                /** @enum {string} */
                dialect?: "auto" | "native" | "json_strict" | "xml_tag" | "hermes" | "qwen_coder" | "llama_json" | "llama_pythonic" | "mistral" | "deepseek" | "glm" | "hunyuan" | "k2_horizon" | "kimi" | "harmony" | "deepseek_dsml" | "minimax" | "kimi_k3" | "minicpm" | "step" | "muse" | "grok" | "minimax_m3" | "gemma" | "functiongemma" | "olmo" | "cohere" | "apertus" | "inkling" | "plamo" | "functionary" | "json_tags" | "solar" | "any";
                workspace?: string;
                metadata?: {
                    [key: string]: string;
                };
                always_tools?: string[];
            };
            usage: components["schemas"]["Usage"];
            created: number;
            updated: number;
            live: boolean;
            waiting: number;
            parent: components["schemas"]["Origin"] | null;
            snippet: string | null;
            found: string | null;
            /** @default false */
            pinned: boolean;
            /** @default false */
            archived: boolean;
            tags: string[];
            /** @default  */
            owner: string;
            role: string | null;
            /** @default false */
            shared: boolean;
            /**
             * @default conversation.changed
             * @constant
             */
            type: "conversation.changed";
        };
        ConversationDeleted: {
            id: string;
            /**
             * @default conversation.deleted
             * @constant
             */
            type: "conversation.deleted";
        };
        /** @description Settings of one conversation. They override those of its agent and of the program. */
        ConversationSettings: {
            /** @description as PROVIDER/MODEL */
            model?: string | null;
            /** @description who answers */
            agent?: string | null;
            /** @description how calls are approved */
            mode?: ("auto" | "ask" | "manual" | "off") | null;
            /** @description a system prompt, after the general one */
            system?: string | null;
            /** @description of requests, such as temperature */
            options?: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            /** @description groups and tools that are on or off */
            tools?: {
                [key: string]: boolean;
            } | null;
            /** @description results that a person sees before the model */
            review?: ("never" | "on_error" | "always") | {
                [key: string]: "never" | "on_error" | "always";
            } | null;
            /** @description batches of calls in one turn; 0 means no tools */
            max_rounds?: number | null;
            /** @description how often the model continues a reply that was cut off */
            continuations?: number | null;
            /** @description earlier turns that a request contains */
            history?: number | null;
            /** @description names for texts that no provider may see */
            private?: {
                [key: string]: string;
            } | null;
            /** @description how the model calls tools: auto, native, or as text */
            dialect?: string | null;
            /** @description the folder that tools work in, by its name */
            workspace?: string | null;
            /** @description your own values, which no model sees */
            metadata?: {
                [key: string]: string;
            } | null;
            /** @description tools of servers that are always loaded */
            always_tools?: string[] | null;
        };
        /** @description A line of the conversation list. */
        ConversationSummary: {
            id: string;
            title: string | null;
            leaf: string | null;
            settings: {
                model?: string;
                agent?: string;
                /** @enum {string} */
                mode?: "auto" | "ask" | "manual" | "off";
                system?: string;
                options?: {
                    [key: string]: unknown;
                };
                tools?: {
                    [key: string]: boolean;
                };
                review?: ("never" | "on_error" | "always") | {
                    [key: string]: "never" | "on_error" | "always";
                };
                max_rounds?: number;
                continuations?: number;
                history?: number;
                private?: {
                    [key: string]: string;
                };
                /** @enum {string} */
                dialect?: "auto" | "native" | "json_strict" | "xml_tag" | "hermes" | "qwen_coder" | "llama_json" | "llama_pythonic" | "mistral" | "deepseek" | "glm" | "hunyuan" | "k2_horizon" | "kimi" | "harmony" | "deepseek_dsml" | "minimax" | "kimi_k3" | "minicpm" | "step" | "muse" | "grok" | "minimax_m3" | "gemma" | "functiongemma" | "olmo" | "cohere" | "apertus" | "inkling" | "plamo" | "functionary" | "json_tags" | "solar" | "any";
                workspace?: string;
                metadata?: {
                    [key: string]: string;
                };
                always_tools?: string[];
            };
            usage: components["schemas"]["Usage"];
            created: number;
            updated: number;
            live: boolean;
            waiting: number;
            parent: components["schemas"]["Origin"] | null;
            snippet: string | null;
            found: string | null;
            /** @default false */
            pinned: boolean;
            /** @default false */
            archived: boolean;
            tags: string[];
            /** @default  */
            owner: string;
            role: string | null;
            /** @default false */
            shared: boolean;
        };
        /**
         * @description How many calls were examined and how many are covered.
         *
         *     `calls` are the newest covered calls, without duplicates of the same tool and patterns. `waiting` are
         *     calls in any conversation that ask for approval now and would not with the rule.
         */
        CoveredCalls: {
            looked_at: number;
            covered: number;
            calls: components["schemas"]["PastCall"][];
            /** @default [] */
            waiting: components["schemas"]["PastCall"][];
        };
        Credentials: {
            password: string;
        };
        /** @description The default model, and a note that users should read. */
        CurrentModel: {
            name: string;
            note: string | null;
            reason: string | null;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        DaySpent: {
            day: string;
            usage: components["schemas"]["Usage"];
        };
        /** @description A user's decision. The kind of the approval request determines the possible verdicts. */
        Decision: {
            /** @enum {string} */
            verdict: "allow" | "reject" | "stop" | "release" | "withhold" | "reply";
            /**
             * @default once
             * @enum {string}
             */
            scope?: "once" | "conversation" | "hour" | "always";
            /** @description run with these instead */
            arguments?: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            /**
             * @description the rules to add, of those the question offers
             * @default []
             */
            rules?: components["schemas"]["Rule-Input"][];
            /** @description for the model to read */
            reason?: string | null;
            /** @description the reply to a tool, or the text to release instead */
            value?: components["schemas"]["JsonValue"];
            /** @description hash of the arguments you saw; checked if given */
            hash?: string | null;
        };
        /**
         * @description File changes, each as a unified diff. `notes` name changes that could not be recorded. For a turn,
         *     `undone` names those that were undone since.
         */
        DiffView: {
            files: components["schemas"]["FileDiff"][];
            notes: string[];
            undone: string[];
        };
        Done: {
            /** @default true */
            ok: boolean;
        };
        /** @description A running or finished download. */
        Download: {
            name: string;
            repo: string;
            size: number;
            done: number;
            /** @enum {string} */
            state: "running" | "done" | "failed";
            error: string | null;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        DownloadSetup: {
            checked: string;
            offers: components["schemas"]["OfferedModel"][];
            items: components["schemas"]["Download"][];
        };
        /** @description New text for a message. Omitted options stay as they were for the message it replaces. */
        Edit: {
            /** @description as PROVIDER/MODEL */
            model?: string | null;
            /** @description who answers */
            agent?: string | null;
            /** @description how calls are approved */
            mode?: ("auto" | "ask" | "manual" | "off") | null;
            /** @description a system prompt, after the general one */
            system?: string | null;
            /**
             * @description of requests, such as temperature; null takes one away
             * @default {}
             */
            options?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description plugins that stay out of it
             * @default []
             */
            disable?: string[];
            /**
             * @description groups and tools that are on or off
             * @default {}
             * @example {
             *       "files": false,
             *       "files.read_file": true
             *     }
             */
            tools?: {
                [key: string]: boolean;
            };
            /** @description how the model calls tools: auto, native, or as text, such as xml_tag */
            dialect?: string | null;
            /** @description results that a person sees before the model */
            review?: ("never" | "on_error" | "always") | {
                [key: string]: "never" | "on_error" | "always";
            } | null;
            /** @description batches of calls; 0 means no tools */
            max_rounds?: number | null;
            /** @description how often the model continues a reply that was cut off */
            continuations?: number | null;
            /** @description earlier turns that its requests contain */
            history?: number | null;
            /**
             * @description summarize what came before first
             * @default false
             */
            compact?: boolean;
            /** @description names for texts that no provider may see */
            private?: {
                [key: string]: string;
            } | null;
            /** @description the folder that tools work in, by its name; empty: the server's own */
            workspace?: string | null;
            /** @description a JSON schema: the answer is such a value, as JSON; what does not fit goes back */
            output_schema?: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            /**
             * @description tools that the sender runs, and delivers the results of
             * @default []
             */
            client_tools?: components["schemas"]["ToolSpec"][];
            /**
             * @description first undo file changes since then
             * @default false
             */
            revert_files?: boolean;
            /** @example What is 17 * 23? */
            text?: string | null;
            parts?: (components["schemas"]["Text-Input"] | components["schemas"]["File-Input"])[] | null;
            /**
             * @description strings by their titles, sent before the message
             * @default {}
             */
            contexts?: {
                [key: string]: string;
            };
        };
        /** @description Marks an interrupted reply with the reason. Never sent to a model. */
        Error: {
            message: string;
            /** @default error */
            kind: string;
            /** @default false */
            retryable: boolean;
            /**
             * @default error
             * @constant
             */
            type: "error";
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        ErrorRaised: {
            message: string;
            /** @default error */
            kind: string;
            /** @default false */
            retryable: boolean;
            /** @default 0 */
            seq: number;
            /**
             * @default error
             * @constant
             */
            type: "error";
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description A case with the recorded answer and all others. */
        EvaluatedCase: {
            id: string;
            question: string;
            turn: string;
            recorded: components["schemas"]["AnswerLine"] | null;
            answers: components["schemas"]["AnswerLine"][];
        };
        /** @description A run, as a list shows it. `size` is in bytes. */
        EvaluationLine: {
            name: string;
            created: number;
            size: number;
        };
        /** @description The matrix of a run. */
        EvaluationView: {
            name: string;
            created: number;
            variants: components["schemas"]["VariantLine"][];
            cases: components["schemas"]["CaseLine"][];
        };
        /**
         * @description An image, audio or a document, with its bytes in the blob store (`blob`) or elsewhere (`url`).
         *
         *     `made_by` is the model that made the file, if any. `signature` is its provider's mark, sent back with the
         *     file to that model only.
         */
        "File-Input": {
            media_type: string;
            blob?: string | null;
            url?: string | null;
            name?: string | null;
            size?: number | null;
            made_by?: string | null;
            signature?: string | null;
            /**
             * @default file
             * @constant
             */
            type: "file";
        };
        /**
         * @description An image, audio or a document, with its bytes in the blob store (`blob`) or elsewhere (`url`).
         *
         *     `made_by` is the model that made the file, if any. `signature` is its provider's mark, sent back with the
         *     file to that model only.
         */
        "File-Output": {
            media_type: string;
            blob: string | null;
            url: string | null;
            name: string | null;
            size: number | null;
            made_by: string | null;
            signature: string | null;
            /**
             * @default file
             * @constant
             */
            type: "file";
        };
        /**
         * @description An image or audio that the model made: a complete part of the reply.
         *
         *     A wire puts its bytes into a data: URL. A turn stores them before it publishes the event.
         */
        FileAdded: {
            file: components["schemas"]["File-Output"];
            /** @default 0 */
            seq: number;
            /**
             * @default file.added
             * @constant
             */
            type: "file.added";
        };
        /** @description The change of one file. `text` is a unified diff that `git apply` and `patch` understand. */
        FileDiff: {
            path: string;
            /** @enum {string} */
            status: "added" | "deleted" | "modified" | "renamed";
            text: string;
            /** @default 0 */
            added: number;
            /** @default 0 */
            removed: number;
            /** @default false */
            binary: boolean;
            old_path: string | null;
            /** @default false */
            truncated: boolean;
        };
        /**
         * @description An unfinished file of the reply, for display only. Readers can drop it.
         *
         *     Without an `offset`, it is the current version of the file and replaces earlier ones. With one, it is the
         *     chunk that starts at that byte. The complete file follows as a `FileAdded`. Partial files never become
         *     part of a message.
         */
        FilePartial: {
            file: components["schemas"]["File-Output"];
            /** @default 0 */
            index: number;
            offset: number | null;
            /** @default 0 */
            seq: number;
            /**
             * @default file.partial
             * @constant
             */
            type: "file.partial";
        };
        FilledPrompt: {
            text: string;
        };
        /** @description A folder with settings, tools or programs, and the admin's decision about it. */
        FolderTrust: {
            folder: string;
            /** @enum {string} */
            state: "trusted" | "changed" | "not_trusted" | "unsafe";
            would: string[];
            changes: string[];
            /** @default  */
            reason: string;
            files: string[];
            /** @default  */
            seen: string;
            /** @default false */
            restart: boolean;
        };
        FolderTrustList: {
            items: components["schemas"]["FolderTrust"][];
        };
        Fork: {
            /** @description the last message of the copy */
            message: string;
            /**
             * @description it works in a copy of the workspace, as it was at that message
             * @default false
             */
            own_folder?: boolean;
        };
        GrantList: {
            items: components["schemas"]["GrantView"][];
        };
        GrantView: {
            id: string;
            rule: components["schemas"]["Rule-Output"];
            words: string;
            conversation: string | null;
            folder: string | null;
            created: number;
            expires: number | null;
        };
        GroupList: {
            groups: components["schemas"]["GroupView"][];
        };
        GroupView: {
            name: string;
            rules: string;
            on: boolean;
            server: string | null;
            state: string | null;
            tools: components["schemas"]["ToolView"][];
            problem: string | null;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description A running program makes a call. The usual events of the call follow. */
        InnerCallMade: {
            call: string;
            tool: string;
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            made_in: components["schemas"]["MadeIn"];
            /** @default 0 */
            seq: number;
            /**
             * @default call.made
             * @constant
             */
            type: "call.made";
        };
        /** @description The provider ran a tool, such as a search: a whole part of the reply. */
        ItemAdded: {
            kind: string;
            /** @default  */
            text: string;
            wire: string | null;
            opaque: components["schemas"]["JsonValue"];
            /** @default 0 */
            seq: number;
            /**
             * @default item.added
             * @constant
             */
            type: "item.added";
        };
        JsonValue: Json;
        /** @description A path on the server that signs one browser in. */
        Link: {
            path: string;
            expires: number;
        };
        /** @description The client missed changes of the list and must read it again. */
        ListReset: {
            /**
             * @default list.reset
             * @constant
             */
            type: "list.reset";
        };
        LiveEvent: ((components["schemas"]["TurnStart"] | components["schemas"]["TurnState"] | components["schemas"]["TurnEnd"] | components["schemas"]["StepStart"] | components["schemas"]["StepRetry"] | components["schemas"]["StepModel"] | components["schemas"]["StepEnd"] | components["schemas"]["Notice"] | components["schemas"]["ErrorRaised"] | components["schemas"]["ReasoningStart"] | components["schemas"]["ReasoningDelta"] | components["schemas"]["ReasoningEnd"] | components["schemas"]["TextStart"] | components["schemas"]["TextDelta"] | components["schemas"]["TextEnd"] | components["schemas"]["TextCited"] | components["schemas"]["ItemAdded"] | components["schemas"]["FileAdded"] | components["schemas"]["FilePartial"] | components["schemas"]["CallInputStart"] | components["schemas"]["CallInputDelta"] | components["schemas"]["CallInputEnd"] | components["schemas"]["ProviderData"] | components["schemas"]["MessageEnd"] | components["schemas"]["MessageAdded"] | components["schemas"]["QuestionAsked"] | components["schemas"]["CallAnswered"] | components["schemas"]["InnerCallMade"] | components["schemas"]["CallStart"] | components["schemas"]["CallProgress"] | components["schemas"]["CallEnd"]) & {
            turn: string;
        }) | components["schemas"]["TreeView"] | components["schemas"]["QueueChanged"] | components["schemas"]["ConversationChanged"] | components["schemas"]["ConversationDeleted"] | components["schemas"]["PresenceChanged"] | components["schemas"]["ListReset"];
        /** @description A call that a turn made, with its result as the model read it. */
        MadeCall: {
            tool: string;
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            result: components["schemas"]["JsonValue"];
            /** @default false */
            failed: boolean;
            /** @default false */
            unrecorded: boolean;
            /** @default false */
            simulated: boolean;
        };
        /**
         * @description The position in a program that makes a call: the program's call, the line, and the number of
         *     the call.
         */
        MadeIn: {
            call: string;
            line: number;
            number: number;
        };
        Me: {
            user: string;
            version: string;
            model: components["schemas"]["CurrentModel"] | null;
            /** @enum {string} */
            mode: "auto" | "ask" | "manual" | "off";
            agents: components["schemas"]["AgentView"][];
            limits: components["schemas"]["UploadLimits"];
            workspace: string | null;
            workspaces: string[];
            signed_in: boolean;
            needs_password: boolean;
        };
        MemberList: {
            items: components["schemas"]["MemberView"][];
        };
        MemberRole: {
            /** @enum {string} */
            role: "reads" | "answers" | "takes_part";
        };
        MemberView: {
            user: string;
            role: string;
            /** @default  */
            added_by: string;
            /** @default 0 */
            added: number;
        };
        /** @description One message of a conversation's tree. An assistant's message is one model reply. */
        Message: {
            id: string;
            conversation: string;
            parent: string | null;
            /** @enum {string} */
            role: "user" | "assistant";
            parts: (components["schemas"]["Text-Output"] | components["schemas"]["Reasoning"] | components["schemas"]["ToolCall"] | components["schemas"]["ProviderItem"] | components["schemas"]["File-Output"] | components["schemas"]["Summary"] | components["schemas"]["Error"])[];
            turn: string | null;
            author: string | null;
            model: string | null;
            finish: string | null;
            usage: components["schemas"]["Usage"] | null;
            /** @default 0 */
            created: number;
            metadata: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /** @default [] */
            inner: components["schemas"]["ToolCall"][];
            by: string | null;
        };
        /** @description A plugin or a steering user added a message. */
        MessageAdded: {
            message: components["schemas"]["Message"];
            /** @default 0 */
            seq: number;
            /**
             * @default message.added
             * @constant
             */
            type: "message.added";
        };
        /** @description A user's message: text, or text and files. */
        MessageBody: {
            /** @example What is 17 * 23? */
            text?: string | null;
            parts?: (components["schemas"]["Text-Input"] | components["schemas"]["File-Input"])[] | null;
            /**
             * @description strings by their titles, sent before the message
             * @default {}
             */
            contexts?: {
                [key: string]: string;
            };
        };
        /**
         * @description The reply is over. `finish` is a word of `messages/endings.py`, and `reason` is the provider's own
         *     word.
         *
         *     `unfinished` is true if nothing marked its end. It may have been truncated.
         */
        MessageEnd: {
            finish: string;
            usage: components["schemas"]["Usage"];
            /** @default  */
            message: string;
            /** @default false */
            unfinished: boolean;
            /** @default  */
            reason: string;
            /** @default 0 */
            seq: number;
            /**
             * @default message.end
             * @constant
             */
            type: "message.end";
        };
        /**
         * @description Whether an expectation was met, with the reason if not. A judgment also has `prompt`, `model` and
         *     `votes`.
         */
        Met: {
            name: string;
            passed: boolean;
            /** @default  */
            reason: string;
            /** @default  */
            prompt: string;
            /** @default  */
            model: string;
            /** @default [] */
            votes: components["schemas"]["Vote"][];
        };
        ModelList: {
            default: string | null;
            items: components["schemas"]["ModelView"][];
            providers: components["schemas"]["ProviderView"][];
            options: {
                [key: string]: unknown;
            };
        };
        ModelSpent: {
            model: string | null;
            usage: components["schemas"]["Usage"];
            messages: number;
        };
        ModelView: {
            name: string;
            provider: string;
            title: string;
            context: number | null;
            modalities: string[];
            tools: string | null;
            note: string | null;
            /** @default true */
            ready: boolean;
            missing: string | null;
            price: components["schemas"]["Price"] | null;
            /**
             * @default chat
             * @enum {string}
             */
            type: "chat" | "image-gen" | "image-edit" | "audio-stt" | "audio-tts";
            unit_prices: {
                [key: string]: number;
            };
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        NamedPrompt: {
            name: string;
            text: string;
            /** @default false */
            shared: boolean;
        };
        NewConversation: {
            title?: string | null;
            /**
             * @default {}
             * @example {
             *       "mode": "ask",
             *       "review": "always",
             *       "tools": {
             *         "files": false
             *       }
             *     }
             */
            settings?: components["schemas"]["ConversationSettings"];
        };
        NewDownload: {
            /** @example unsloth/Qwen3-4B-Instruct-2507-GGUF:Q4_K_M */
            model: string;
        };
        /** @description A rule that is not the answer to an approval request. */
        NewGrant: {
            /** @example shell */
            permission: string;
            /**
             * @default *
             * @example git *
             */
            pattern?: string;
            /**
             * @default allow
             * @enum {string}
             */
            action?: "allow" | "deny";
            /**
             * @default always
             * @enum {string}
             */
            scope?: "hour" | "always";
        };
        NewInvitation: {
            /**
             * @default reads
             * @enum {string}
             */
            role?: "reads" | "answers" | "takes_part";
            /** @description seconds for which it is valid; null: a week */
            seconds?: number | null;
        };
        NewKey: {
            /**
             * Format: password
             * @description stored, and never sent back
             */
            key: string;
        };
        NewLink: {
            /** @description the last message it shows; null: all of them */
            upto?: string | null;
            /**
             * @description what it shows now, whatever follows
             * @default false
             */
            frozen?: boolean;
            /**
             * @description what it leaves out
             * @default []
             */
            omits?: ("arguments" | "results" | "files" | "reasoning")[];
            /** @description seconds for which it is valid; null: a week */
            seconds?: number | null;
        };
        NewOwner: {
            user: string;
        };
        /** @description A custom server that speaks one of the known protocols. */
        NewProvider: {
            /** @example my-server */
            name: string;
            /** @example http://127.0.0.1:8000/v1 */
            base_url: string;
            /**
             * @default openai_chat
             * @enum {string}
             */
            wire?: "openai_chat" | "openai_responses" | "anthropic_messages" | "gemini";
            /** @description without one, requests carry none */
            key?: string | null;
        };
        NewRating: {
            /**
             * @description what you think of the answer
             * @enum {string}
             */
            value: "good" | "bad";
            /**
             * @description why
             * @default
             */
            note?: string;
        };
        /** @description An MCP server: a program to start, or an address. */
        NewServer: {
            /** @example files */
            name: string;
            /** @description the program, without its arguments */
            command?: string | null;
            args?: string[];
            /** @description values that look like secrets are stored like keys */
            env?: {
                [key: string]: string;
            };
            cwd?: string | null;
            /** @description its address, if it is not a program */
            url?: string | null;
            /** @description values that look like secrets are stored like keys */
            headers?: {
                [key: string]: string;
            };
            /**
             * @description of an older server
             * @default false
             */
            sse?: boolean;
            /**
             * @description it wants a sign-in in the browser
             * @default false
             */
            oauth?: boolean;
        };
        /** @description A new invitation or link. The token is shown only here. */
        NewShareView: {
            share: components["schemas"]["ShareView"];
            token: string;
        };
        /** @description A new message, and how to answer it. */
        NewTurn: {
            /** @description as PROVIDER/MODEL */
            model?: string | null;
            /** @description who answers */
            agent?: string | null;
            /** @description how calls are approved */
            mode?: ("auto" | "ask" | "manual" | "off") | null;
            /** @description a system prompt, after the general one */
            system?: string | null;
            /**
             * @description of requests, such as temperature; null takes one away
             * @default {}
             */
            options?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description plugins that stay out of it
             * @default []
             */
            disable?: string[];
            /**
             * @description groups and tools that are on or off
             * @default {}
             * @example {
             *       "files": false,
             *       "files.read_file": true
             *     }
             */
            tools?: {
                [key: string]: boolean;
            };
            /** @description how the model calls tools: auto, native, or as text, such as xml_tag */
            dialect?: string | null;
            /** @description results that a person sees before the model */
            review?: ("never" | "on_error" | "always") | {
                [key: string]: "never" | "on_error" | "always";
            } | null;
            /** @description batches of calls; 0 means no tools */
            max_rounds?: number | null;
            /** @description how often the model continues a reply that was cut off */
            continuations?: number | null;
            /** @description earlier turns that its requests contain */
            history?: number | null;
            /**
             * @description summarize what came before first
             * @default false
             */
            compact?: boolean;
            /** @description names for texts that no provider may see */
            private?: {
                [key: string]: string;
            } | null;
            /** @description the folder that tools work in, by its name; empty: the server's own */
            workspace?: string | null;
            /** @description a JSON schema: the answer is such a value, as JSON; what does not fit goes back */
            output_schema?: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            /**
             * @description tools that the sender runs, and delivers the results of
             * @default []
             */
            client_tools?: components["schemas"]["ToolSpec"][];
            /** @example What is 17 * 23? */
            text?: string | null;
            parts?: (components["schemas"]["Text-Input"] | components["schemas"]["File-Input"])[] | null;
            /**
             * @description strings by their titles, sent before the message
             * @default {}
             */
            contexts?: {
                [key: string]: string;
            };
            /** @description the message to answer to, if not the leaf */
            parent?: string | null;
            /**
             * @description wait for the running turn instead of failing
             * @default false
             */
            queue?: boolean;
        };
        /** @description Information that needs no action. */
        Notice: {
            text: string;
            /** @default notice */
            kind: string;
            /** @default 0 */
            seq: number;
            /**
             * @default notice
             * @constant
             */
            type: "notice";
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description A downloadable model with its published data, and an estimate of how it runs on this machine. */
        OfferedModel: {
            model: string;
            title: string;
            size: number;
            license: string;
            claim: string;
            source: string;
            /** @enum {string} */
            fit: "gpu" | "memory" | "slow" | "no";
            recommended: boolean;
        };
        /** @description The call that opened a sub-conversation. */
        Origin: {
            conversation: string;
            call: string | null;
        };
        Page: {
            items: components["schemas"]["ConversationSummary"][];
            next: string | null;
            tags: string[];
        };
        /** @description A call with only some of its changes. */
        PartialCall: {
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            };
        };
        PastCall: {
            conversation: string;
            call: string;
            tool: string;
            patterns: string[];
        };
        /** @description The users who have a shared conversation open, or who are typing, have changed. */
        PresenceChanged: {
            conversation: string;
            users: components["schemas"]["PresentUser"][];
            /**
             * @default presence
             * @constant
             */
            type: "presence";
        };
        /** @description The owner and members who have the conversation open now. Readers of a link do not count. */
        PresenceView: {
            conversation: string;
            users: components["schemas"]["PresentUser"][];
        };
        PresentUser: {
            user: string;
            /** @default false */
            typing: boolean;
        };
        /** @description Dollars per million tokens. */
        Price: {
            input: number;
            output: number;
        };
        /** @description Problem details (RFC 9457). */
        Problem: {
            title: string;
            status: number;
            detail: string;
            /** @default about:blank */
            type?: string;
            errors?: {
                [key: string]: unknown;
            }[];
            /** @default  */
            code?: string;
            values?: {
                [key: string]: unknown;
            };
        };
        Prompt: {
            /** @example Review this text: */
            text: string;
        };
        PromptArguments: {
            /** @default {} */
            arguments?: {
                [key: string]: string;
            };
        };
        PromptList: {
            items: components["schemas"]["NamedPrompt"][];
        };
        /**
         * @description Other fields of a provider's chunk, such as a service tier, under the provider's names.
         *
         *     Dragoman does not store them. A plugin can.
         */
        ProviderData: {
            wire: string;
            data: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /** @default 0 */
            seq: number;
            /**
             * @default provider.data
             * @constant
             */
            type: "provider.data";
        };
        /**
         * @description A provider-specific item of a reply: a search, executed code, or a result.
         *
         *     It happened on the provider's side, so Dragoman has nothing to decide or run. `kind` is the provider's
         *     name for it, and `text` is a line for users. `opaque` is sent back in its position, only to the model it
         *     came from.
         */
        ProviderItem: {
            kind: string;
            /** @default  */
            text: string;
            wire: string | null;
            model: string | null;
            opaque: components["schemas"]["JsonValue"];
            /**
             * @default item
             * @constant
             */
            type: "item";
        };
        /** @description A provider, and how this server signs in to it. */
        ProviderSetup: {
            name: string;
            title: string;
            ready: boolean;
            missing: string | null;
            local: boolean;
            keys: string[];
            key_name: string | null;
            key_from: ("given" | "environment" | "keyring" | "file") | null;
            signs_in: string | null;
            address: string | null;
            own: boolean;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        ProviderSetupList: {
            file: string;
            /** @enum {string} */
            stores_in: "keyring" | "file";
            shared: boolean;
            items: components["schemas"]["ProviderSetup"][];
        };
        /** @description The outcome of a request for a provider's list of models. */
        ProviderTest: {
            works: boolean;
            models: string[];
            error: string | null;
            advice: ("key" | "address" | "later" | "talk") | null;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description A provider. Any of its models can be named as NAME/MODEL, whether it is listed or not. */
        ProviderView: {
            name: string;
            title: string;
            ready: boolean;
            missing: string | null;
            /** @default false */
            local: boolean;
            /** @default false */
            custom: boolean;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description A decision that only a user can make. It is stored, outlives the process, and gets one answer. */
        Question: {
            id: string;
            conversation: string;
            turn: string;
            call: string;
            /** @enum {string} */
            kind: "approve" | "run" | "loop" | "interrupted" | "review" | "tool";
            tool: string;
            text: string;
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            hash: string;
            server: string | null;
            /**
             * @default rule
             * @enum {string}
             */
            because: "rule" | "bounds" | "mode" | "plugin" | "redefined" | "loop" | "format" | "interrupted" | "review" | "tool";
            /** @default [] */
            patterns: string[];
            /** @default [] */
            rules: components["schemas"]["Rule-Output"][];
            /** @default [] */
            wider: components["schemas"]["Rule-Output"][];
            /** @default [] */
            choices: string[];
            /** @default false */
            free: boolean;
            schema: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            result: components["schemas"]["ToolResult"] | null;
            /** @default  */
            diff: string;
            /** @default [] */
            told: string[];
            /** @default false */
            in_parts: boolean;
            fingerprint: string | null;
            /** @default 0 */
            asked: number;
            answer: components["schemas"]["Answer"] | null;
            closed: string | null;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description In a conversation's stream, the event contains the whole question, as `/questions/ID` does. */
        QuestionAsked: {
            call: string;
            question: string;
            kind: string;
            tool: string;
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            text: string;
            /** @default rule */
            because: string;
            rules: string[];
            choices: string[];
            schema: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /** @default  */
            diff: string;
            told: string[];
            /** @default false */
            in_parts: boolean;
            /** @default false */
            free: boolean;
            /** @default 0 */
            seq: number;
            /**
             * @default call.asked
             * @constant
             */
            type: "call.asked";
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
            whole: components["schemas"]["Question"] | null;
        };
        QuestionList: {
            items: components["schemas"]["Question"][];
        };
        /** @description The queue of a conversation, or the messages that are to steer its turn, have changed. */
        QueueChanged: {
            conversation: string;
            queued: components["schemas"]["QueuedTurn"][];
            steering: components["schemas"]["SteeringMessage"][];
            /**
             * @default queue.changed
             * @constant
             */
            type: "queue.changed";
        };
        QueueOrder: {
            /** @description queued turns: these come first, so */
            turns: string[];
        };
        /** @description Messages that no turn has taken yet, in order. Each can still be withdrawn. */
        QueueView: {
            conversation: string;
            queued: components["schemas"]["QueuedTurn"][];
            steering: components["schemas"]["SteeringMessage"][];
        };
        /**
         * @description A user's message that waits for the previous turn. If that has ended, it waits for what `waits_for`
         *     names.
         */
        QueuedTurn: {
            id: string;
            message: components["schemas"]["Message"];
            waits_for: string | null;
        };
        /** @description Your rating of a turn's answer. */
        RatingView: {
            turn: string;
            /** @enum {string} */
            value: "good" | "bad";
            /** @default  */
            note: string;
        };
        /** @description The reasoning of a model. `wire` and `opaque` tell where it can be replayed, and with which bytes. */
        Reasoning: {
            text: string;
            signature: string | null;
            wire: string | null;
            model: string | null;
            opaque: components["schemas"]["JsonValue"];
            seconds: number | null;
            field_name: string | null;
            /**
             * @default reasoning
             * @constant
             */
            type: "reasoning";
        };
        ReasoningDelta: {
            text: string;
            /** @default 0 */
            seq: number;
            /**
             * @default reasoning.delta
             * @constant
             */
            type: "reasoning.delta";
        };
        ReasoningEnd: {
            signature: string | null;
            wire: string | null;
            opaque: components["schemas"]["JsonValue"];
            seconds: number | null;
            field_name: string | null;
            /** @default 0 */
            seq: number;
            /**
             * @default reasoning.end
             * @constant
             */
            type: "reasoning.end";
        };
        ReasoningStart: {
            /** @default 0 */
            seq: number;
            /**
             * @default reasoning.start
             * @constant
             */
            type: "reasoning.start";
        };
        Redo: {
            /**
             * @description also if a file changed since
             * @default false
             */
            force?: boolean;
        };
        /** @description A message that arrived meanwhile from a user (`steered`) or a plugin (`appended`). */
        Remark: {
            kind: string;
            at: number;
            by: string | null;
        };
        /** @description One attempt to get a reply. `wait` is the delay before the next attempt. */
        RequestTrace: {
            attempt: number;
            model: string;
            started: number;
            first: number | null;
            ended: number | null;
            finish: string | null;
            error: string | null;
            status: number | null;
            /** @default 0 */
            wait: number;
            usage: components["schemas"]["Usage"] | null;
            /** @default 1 */
            built: number;
            /** @default 1 */
            sent: number;
            /** @default false */
            copied: boolean;
        };
        /** @description How to regenerate an answer. Omitted options stay as they were for the answer it replaces. */
        Rerun: {
            /** @description as PROVIDER/MODEL */
            model?: string | null;
            /** @description who answers */
            agent?: string | null;
            /** @description how calls are approved */
            mode?: ("auto" | "ask" | "manual" | "off") | null;
            /** @description a system prompt, after the general one */
            system?: string | null;
            /**
             * @description of requests, such as temperature; null takes one away
             * @default {}
             */
            options?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description plugins that stay out of it
             * @default []
             */
            disable?: string[];
            /**
             * @description groups and tools that are on or off
             * @default {}
             * @example {
             *       "files": false,
             *       "files.read_file": true
             *     }
             */
            tools?: {
                [key: string]: boolean;
            };
            /** @description how the model calls tools: auto, native, or as text, such as xml_tag */
            dialect?: string | null;
            /** @description results that a person sees before the model */
            review?: ("never" | "on_error" | "always") | {
                [key: string]: "never" | "on_error" | "always";
            } | null;
            /** @description batches of calls; 0 means no tools */
            max_rounds?: number | null;
            /** @description how often the model continues a reply that was cut off */
            continuations?: number | null;
            /** @description earlier turns that its requests contain */
            history?: number | null;
            /**
             * @description summarize what came before first
             * @default false
             */
            compact?: boolean;
            /** @description names for texts that no provider may see */
            private?: {
                [key: string]: string;
            } | null;
            /** @description the folder that tools work in, by its name; empty: the server's own */
            workspace?: string | null;
            /** @description a JSON schema: the answer is such a value, as JSON; what does not fit goes back */
            output_schema?: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            /**
             * @description tools that the sender runs, and delivers the results of
             * @default []
             */
            client_tools?: components["schemas"]["ToolSpec"][];
            /**
             * @description first undo file changes since then
             * @default false
             */
            revert_files?: boolean;
            /**
             * @description also while another answer to it is running
             * @default false
             */
            parallel?: boolean;
        };
        /**
         * @description How to repeat a call: with other arguments, or with this result. With neither, the call is repeated as
         *     it was.
         */
        RerunCall: {
            /** @description as PROVIDER/MODEL */
            model?: string | null;
            /** @description who answers */
            agent?: string | null;
            /** @description how calls are approved */
            mode?: ("auto" | "ask" | "manual" | "off") | null;
            /** @description a system prompt, after the general one */
            system?: string | null;
            /**
             * @description of requests, such as temperature; null takes one away
             * @default {}
             */
            options?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description plugins that stay out of it
             * @default []
             */
            disable?: string[];
            /**
             * @description groups and tools that are on or off
             * @default {}
             * @example {
             *       "files": false,
             *       "files.read_file": true
             *     }
             */
            tools?: {
                [key: string]: boolean;
            };
            /** @description how the model calls tools: auto, native, or as text, such as xml_tag */
            dialect?: string | null;
            /** @description results that a person sees before the model */
            review?: ("never" | "on_error" | "always") | {
                [key: string]: "never" | "on_error" | "always";
            } | null;
            /** @description batches of calls; 0 means no tools */
            max_rounds?: number | null;
            /** @description how often the model continues a reply that was cut off */
            continuations?: number | null;
            /** @description earlier turns that its requests contain */
            history?: number | null;
            /**
             * @description summarize what came before first
             * @default false
             */
            compact?: boolean;
            /** @description names for texts that no provider may see */
            private?: {
                [key: string]: string;
            } | null;
            /** @description the folder that tools work in, by its name; empty: the server's own */
            workspace?: string | null;
            /** @description a JSON schema: the answer is such a value, as JSON; what does not fit goes back */
            output_schema?: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            /**
             * @description tools that the sender runs, and delivers the results of
             * @default []
             */
            client_tools?: components["schemas"]["ToolSpec"][];
            /**
             * @description first undo file changes since then
             * @default false
             */
            revert_files?: boolean;
            /** @description in place of those it had */
            arguments?: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            /** @description its result; then the call does not run */
            result?: string | null;
        };
        /** @description The result of a call that the client ran. */
        Result: {
            text?: string | null;
            value?: components["schemas"]["JsonValue"];
            /** @default false */
            failed?: boolean;
        };
        ResumeEntry: {
            interruptId: string;
            /** @enum {string} */
            status: "resolved" | "cancelled";
            payload?: components["schemas"]["JsonValue"];
        };
        /** @description The parameters of the address that a browser returned with from its sign-in. */
        Returned: {
            state: string;
            code?: string | null;
            iss?: string | null;
            error?: string | null;
            error_description?: string | null;
        };
        Revert: {
            /**
             * @description leave the conversation where it is
             * @default false
             */
            files_only?: boolean;
            /**
             * @description only these files of the diff; the conversation stays
             * @default []
             */
            paths?: string[];
            /**
             * @description overwrite files that changed since
             * @default false
             */
            force?: boolean;
        };
        /** @description The changed paths, the skipped paths, and the new position of the conversation. */
        RevertView: {
            paths: string[];
            notes: string[];
            leaf: string | null;
            moved: boolean;
        };
        /**
         * @description A rule. `permission` is a tool's permission name, `pattern` what the call touches.
         *
         *     The last matching rule decides.
         */
        "Rule-Input": {
            permission: string;
            /** @default * */
            pattern?: string;
            /**
             * @default ask
             * @enum {string}
             */
            action?: "allow" | "ask" | "deny";
            /** @default  */
            origin?: string;
            said?: {
                [key: string]: components["schemas"]["Said-Input"];
            } | null;
        };
        /**
         * @description A rule. `permission` is a tool's permission name, `pattern` what the call touches.
         *
         *     The last matching rule decides.
         */
        "Rule-Output": {
            permission: string;
            /** @default * */
            pattern: string;
            /**
             * @default ask
             * @enum {string}
             */
            action: "allow" | "ask" | "deny";
            /** @default  */
            origin: string;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /**
         * @description The decision of rules and grants, before mode, bounds and plugins apply. Without a rule, a user is
         *     asked.
         */
        RuleDecision: {
            /** @enum {string} */
            action: "allow" | "ask" | "deny";
            rule: components["schemas"]["Rule-Output"] | null;
        };
        /** @description Rules. The last matching one decides, and grants follow after all of them. */
        RuleList: {
            items: components["schemas"]["RuleView"][];
        };
        /** @description A rule of the settings or of an agent. */
        RuleView: {
            rule: components["schemas"]["Rule-Output"];
            agent: string | null;
        };
        RunAgentInput: {
            threadId: string;
            runId: string;
            messages?: components["schemas"]["AgentMessage"][];
            tools?: components["schemas"]["AgentTool"][];
            context?: components["schemas"]["ContextEntry"][];
            resume?: components["schemas"]["ResumeEntry"][];
            state?: components["schemas"]["JsonValue"];
            forwardedProps?: components["schemas"]["JsonValue"];
            /** @default  */
            protocolVersion?: string;
        } & {
            [key: string]: unknown;
        };
        /** @description A sentence as it is stored and sent. A value that is a sentence has the same form. */
        "Said-Input": {
            code: string;
            text: string;
            values: {
                [key: string]: components["schemas"]["JsonValue"];
            };
        };
        /** @description A sentence as it is stored and sent. A value that is a sentence has the same form. */
        "Said-Output": {
            code: string;
            text: string;
            values: {
                [key: string]: components["schemas"]["JsonValue"];
            };
        };
        /** @description The progress of a sign-in at an MCP server, without tokens. */
        ServerLogin: {
            server: string;
            /** @enum {string} */
            state: "starting" | "waiting" | "finishing" | "done" | "unneeded" | "refused" | "timed_out" | "failed";
            url: string | null;
            host: string | null;
            until: number | null;
            error: string | null;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description Exactly what would run, for the admin to confirm. `confirm` is valid once, for five minutes. */
        ServerPlan: {
            name: string;
            program: string | null;
            argv: string[];
            cwd: string | null;
            url: string | null;
            env: {
                [key: string]: string;
            };
            headers: {
                [key: string]: string;
            };
            secrets: string[];
            file: string;
            rules: components["schemas"]["Rule-Output"][];
            confirm: string;
            oauth: boolean;
        };
        ServerPromptList: {
            items: components["schemas"]["ServerPromptView"][];
        };
        /** @description A prompt of an MCP server. `required` and `optional` are the names of its arguments. */
        ServerPromptView: {
            server: string;
            name: string;
            description: string;
            required: string[];
            optional: string[];
        };
        /** @description An MCP server with its settings, its state, and the reason for a failure. */
        ServerSetup: {
            name: string;
            kind: string;
            where: string;
            origin: string | null;
            own: boolean;
            enabled: boolean;
            state: string;
            error: string | null;
            log: string[];
            tools: components["schemas"]["ServerTool"][];
            left_out: string[];
            signs_in: boolean;
            login: components["schemas"]["ServerLogin"] | null;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        ServerSetupList: {
            file: string;
            shared: boolean;
            items: components["schemas"]["ServerSetup"][];
        };
        ServerTool: {
            name: string;
            description: string;
            for_resources: boolean;
        };
        ShareList: {
            items: components["schemas"]["ShareView"][];
        };
        /** @description An invitation or a link. `upto` is the last message that a link shows. */
        ShareView: {
            id: string;
            /** @enum {string} */
            kind: "invitation" | "link";
            role: string;
            created_by: string;
            created: number;
            expires: number | null;
            upto: string | null;
            frozen: boolean;
            omits: string[];
        };
        /** @description The branch that a conversation shows, or its beginning, for anyone who has the link. */
        SharedConversation: {
            title: string;
            messages: components["schemas"]["SharedMessage"][];
            omits: string[];
            /** @default false */
            frozen: boolean;
        };
        SharedMessage: {
            role: string;
            parts: components["schemas"]["SharedPart"][];
            created: number;
            model: string | null;
        };
        /**
         * @description A part of a message.
         *
         *     A call has `tool`, `state` and, unless omitted, `arguments` and its result as `text`. A file has `name`
         *     and `media_type`, without its bytes.
         */
        SharedPart: {
            /** @enum {string} */
            kind: "text" | "reasoning" | "call" | "file" | "error";
            /** @default  */
            text: string;
            tool: string | null;
            state: string | null;
            arguments: components["schemas"]["JsonValue"];
            name: string | null;
            media_type: string | null;
        };
        SignedOut: {
            url: string;
        };
        /** @description The content of a skill's `SKILL.md`. Other fields of the front matter are kept. */
        SkillBody: {
            /** @description the text that the model sees before it loads the skill */
            description: string;
            /**
             * @description when to use it
             * @default
             */
            when?: string;
            /**
             * @description its text is in the system prompt of every turn
             * @default false
             */
            always?: boolean;
            /** @description Markdown */
            text: string;
            /** @description of the object you change; a new one has none */
            version?: string | null;
        };
        SkillSetup: {
            name: string;
            description: string;
            when: string;
            always: boolean;
            text: string;
            origin: string;
            own: boolean;
            version: string;
        };
        SkillSetupList: {
            folder: string;
            items: components["schemas"]["SkillSetup"][];
            left_out: string[];
        };
        /** @description Replies and calls that share these values. None: all of them, or unknown. */
        Spending: {
            day: string | null;
            person: string | null;
            model: string | null;
            agent: string | null;
            tool: string | null;
            /** @default 0 */
            replies: number;
            /** @default 0 */
            input: number;
            /** @default 0 */
            output: number;
            /** @default 0 */
            cached: number;
            /** @default 0 */
            reasoning: number;
            /** @default 0 */
            cost: number;
            /** @default 0 */
            unpriced: number;
            /** @default 0 */
            calls: number;
            /** @default 0 */
            failed: number;
        };
        /** @description A user's message that a running turn receives before its next step. */
        SteeringMessage: {
            id: number;
            turn: string;
            message: components["schemas"]["Message"];
        };
        StepEnd: {
            step: number;
            usage: components["schemas"]["Usage"];
            /** @default 0 */
            seq: number;
            /**
             * @default step.end
             * @constant
             */
            type: "step.end";
        };
        /** @description The next model of a chain gets the request, before anything of the reply arrived. */
        StepModel: {
            model: string;
            /** @default  */
            reason: string;
            /** @default 0 */
            seq: number;
            /**
             * @default step.model
             * @constant
             */
            type: "step.model";
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description The provider did not answer. Dragoman asks again after a wait, before anything of the reply arrived. */
        StepRetry: {
            attempt: number;
            attempts: number;
            seconds: number;
            reason: string;
            status: number | null;
            /** @default 0 */
            seq: number;
            /**
             * @default step.retry
             * @constant
             */
            type: "step.retry";
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description A request is sent. If `attempt` is above 1, drop everything that you received of `message`. */
        StepStart: {
            step: number;
            attempt: number;
            message: string;
            parent: string | null;
            model: string;
            /** @default 0 */
            seq: number;
            /**
             * @default step.start
             * @constant
             */
            type: "step.start";
        };
        StepTrace: {
            number: number;
            started: number;
            ended: number | null;
            requests: components["schemas"]["RequestTrace"][];
            calls: components["schemas"]["CallTrace"][];
        };
        /** @description Replaces everything before `keeps_from` in a request. The originals stay. */
        Summary: {
            text: string;
            keeps_from: string | null;
            /**
             * @default summary
             * @constant
             */
            type: "summary";
        };
        "Text-Input": {
            text: string;
            /** @default [] */
            citations?: components["schemas"]["Citation-Input"][];
            phase?: string | null;
            /**
             * @default text
             * @constant
             */
            type: "text";
        };
        "Text-Output": {
            text: string;
            /** @default [] */
            citations: components["schemas"]["Citation-Output"][];
            phase: string | null;
            /**
             * @default text
             * @constant
             */
            type: "text";
        };
        /** @description Sources of the latest text, which can be complete already: providers name them late. */
        TextCited: {
            citations: components["schemas"]["Citation-Output"][];
            /** @default 0 */
            seq: number;
            /**
             * @default text.cited
             * @constant
             */
            type: "text.cited";
        };
        TextDelta: {
            text: string;
            /** @default 0 */
            seq: number;
            /**
             * @default text.delta
             * @constant
             */
            type: "text.delta";
        };
        /** @description The text is complete. `was_reasoning`: it turned out to be reasoning (`wire/thinking.py`). */
        TextEnd: {
            /** @default false */
            was_reasoning: boolean;
            phase: string | null;
            /** @default 0 */
            seq: number;
            /**
             * @default text.end
             * @constant
             */
            type: "text.end";
        };
        TextStart: {
            /** @default 0 */
            seq: number;
            /**
             * @default text.start
             * @constant
             */
            type: "text.start";
        };
        Token: {
            token: string;
        };
        /** @description A call with its state and its result. A settled call without a result cannot be built. */
        ToolCall: {
            id: string;
            tool: string;
            arguments: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            raw: string | null;
            /** @default pending */
            state: components["schemas"]["CallState"];
            result: components["schemas"]["ToolResult"] | null;
            provider_id: string | null;
            signature: string | null;
            signed_by: string | null;
            original: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            format: string | null;
            /** @default false */
            guessed: boolean;
            started: number | null;
            ended: number | null;
            made_in: components["schemas"]["MadeIn"] | null;
            /**
             * @default call
             * @constant
             */
            type: "call";
        };
        /**
         * @description The result of a call. The model reads `text`. `value` is the JSON it was made from, if any.
         *
         *     `blob` holds the whole output if `text` contains only its start and end.
         */
        ToolResult: {
            text: string;
            value: components["schemas"]["JsonValue"];
            title: string | null;
            metadata: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /** @default [] */
            attachments: components["schemas"]["File-Output"][];
            blob: string | null;
            note: string | null;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description One start of a call's tool. A call repeated after a crash has several. */
        ToolRun: {
            started: number;
            ended: number | null;
        };
        /** @description A tool as the model sees it. Each example has the arguments of one call. */
        ToolSpec: {
            name: string;
            description: string;
            parameters: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /** @default [] */
            examples?: components["schemas"]["JsonValue"][];
            /** @default false */
            found?: boolean;
        };
        ToolView: {
            name: string;
            offered_as: string | null;
            description: string;
            permission: string;
            schema: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            client: boolean;
            server: string | null;
            on: boolean;
            review: string;
            replay: string;
            ruled: components["schemas"]["Rule-Output"][];
            /** @default 0 */
            tokens: number;
            /**
             * @default always
             * @enum {string}
             */
            loaded: "always" | "found" | "called" | "no";
        };
        /** @description Durations in seconds. Overlapping intervals count once. */
        Totals: {
            seconds: number;
            preparing: number | null;
            first_token: number | null;
            waited: number;
            requests: number;
            tools: number;
        };
        /** @description The timeline of a turn. `now` is the server's time, up to which an unfinished turn has run. */
        TraceView: {
            trace: components["schemas"]["TurnTrace"];
            totals: components["schemas"]["Totals"];
            now: number;
        };
        /**
         * @description A whole conversation as it is now, including unfinished replies. A live stream begins with it.
         *
         *     If it comes again in a stream, it replaces everything before it.
         */
        TreeView: {
            /** @constant */
            type: "snapshot";
            conversation: components["schemas"]["ConversationSummary"];
            messages: components["schemas"]["Message"][];
            turns: components["schemas"]["UnfinishedTurn"][];
            questions: components["schemas"]["Question"][];
            queued: components["schemas"]["QueuedTurn"][];
            steering: components["schemas"]["SteeringMessage"][];
            revision: number;
        };
        /** @description A decision whether a folder's content is used from the next start on. */
        TrustDecision: {
            folder: string;
            trusted: boolean;
            /** @description from the list: the files as you saw them */
            seen: string;
        };
        TurnEnd: {
            state: string;
            text: string;
            usage: components["schemas"]["Usage"];
            error: string | null;
            limit: string | null;
            /** @default  */
            finish: string;
            /** @default 0 */
            seq: number;
            /**
             * @default turn.end
             * @constant
             */
            type: "turn.end";
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        /** @description Why a turn failed. */
        TurnError: {
            message: string;
            kind: string;
            retryable: boolean;
        };
        TurnEvent: components["schemas"]["TurnStart"] | components["schemas"]["TurnState"] | components["schemas"]["TurnEnd"] | components["schemas"]["StepStart"] | components["schemas"]["StepRetry"] | components["schemas"]["StepModel"] | components["schemas"]["StepEnd"] | components["schemas"]["Notice"] | components["schemas"]["ErrorRaised"] | components["schemas"]["ReasoningStart"] | components["schemas"]["ReasoningDelta"] | components["schemas"]["ReasoningEnd"] | components["schemas"]["TextStart"] | components["schemas"]["TextDelta"] | components["schemas"]["TextEnd"] | components["schemas"]["TextCited"] | components["schemas"]["ItemAdded"] | components["schemas"]["FileAdded"] | components["schemas"]["FilePartial"] | components["schemas"]["CallInputStart"] | components["schemas"]["CallInputDelta"] | components["schemas"]["CallInputEnd"] | components["schemas"]["ProviderData"] | components["schemas"]["MessageEnd"] | components["schemas"]["MessageAdded"] | components["schemas"]["CallAsked"] | components["schemas"]["CallAnswered"] | components["schemas"]["InnerCallMade"] | components["schemas"]["CallStart"] | components["schemas"]["CallProgress"] | components["schemas"]["CallEnd"];
        TurnInfo: {
            id: string;
            conversation: string;
            message: string;
            state: string;
            live: boolean;
            started: number;
            usage: components["schemas"]["Usage"];
            waits_for: string | null;
            /** @default 0 */
            rounds: number;
            calls: components["schemas"]["CallInfo"][];
            ended: number | null;
            /** @default  */
            finish: string;
            /** @default  */
            limit: string;
            error: components["schemas"]["TurnError"] | null;
            /** @default 0 */
            trail_size: number;
            /**
             * @default [
             *       0,
             *       0
             *     ]
             */
            answer_slice: [
                number,
                number
            ];
            /** @default  */
            by: string;
        };
        TurnStart: {
            turn: string;
            conversation: string;
            message: string;
            /** @default false */
            resumed: boolean;
            /** @default 0 */
            seq: number;
            /**
             * @default turn.start
             * @constant
             */
            type: "turn.start";
        };
        TurnState: {
            state: string;
            /** @default 0 */
            seq: number;
            /**
             * @default turn.state
             * @constant
             */
            type: "turn.state";
        };
        /** @description A whole turn. Unfinished parts have no end. */
        TurnTrace: {
            turn: string;
            conversation: string;
            /** @default preparing */
            state: string;
            /** @default 0 */
            started: number;
            ended: number | null;
            model: string | null;
            agent: string | null;
            error: string | null;
            error_kind: string | null;
            limit: string | null;
            usage: components["schemas"]["Usage"];
            steps: components["schemas"]["StepTrace"][];
            compactions: components["schemas"]["CompactionTrace"][];
            remarks: components["schemas"]["Remark"][];
            by: string | null;
            cancelled_by: string | null;
        };
        Typing: {
            /** @default true */
            on?: boolean;
        };
        /** @description The fields of `DefaultChatTransport`, and those that an application can add by its `body` option. */
        UIChatBody: {
            id: string;
            messages?: components["schemas"]["UIMessage"][];
            message?: components["schemas"]["UIMessage"] | null;
            /**
             * @default submit-message
             * @enum {string}
             */
            trigger?: "submit-message" | "regenerate-message";
            messageId?: string | null;
            model?: string | null;
            agent?: string | null;
            mode?: ("auto" | "ask" | "manual" | "off") | null;
            system?: string | null;
            options?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            tools?: {
                [key: string]: components["schemas"]["ClientTool"];
            };
        } & {
            [key: string]: unknown;
        };
        UIMessage: {
            /** @default  */
            id?: string;
            metadata?: components["schemas"]["JsonValue"];
            /** @enum {string} */
            role: "system" | "user" | "assistant";
            parts?: components["schemas"]["UIPart"][];
        } & {
            [key: string]: unknown;
        };
        /** @description A part of any kind. `type` and `state` determine which fields apply. */
        UIPart: {
            type: string;
            /** @default  */
            text?: string;
            /** @default  */
            url?: string;
            /** @default  */
            mediaType?: string;
            filename?: string | null;
            /** @default  */
            toolCallId?: string;
            /** @default  */
            toolName?: string;
            /** @default  */
            state?: string;
            input?: components["schemas"]["JsonValue"];
            data?: components["schemas"]["JsonValue"];
            id?: string | null;
            output?: components["schemas"]["JsonValue"];
            /** @default  */
            errorText?: string;
            approval?: components["schemas"]["Approval"] | null;
        };
        /**
         * @description A turn that has not ended. `queued` means that it waits for a worker, or for a slot under a limit.
         *     `interrupted` means that no process runs it: it can be continued or cancelled.
         */
        UnfinishedTurn: {
            id: string;
            message: string;
            state: string;
            live: boolean;
            started: number;
            retrying: string | null;
            arriving: components["schemas"]["FilePartial"] | null;
            said?: {
                [key: string]: components["schemas"]["Said-Output"];
            } | null;
        };
        UploadLimits: {
            upload: number;
            rounds: number | null;
        };
        /**
         * @description Tokens of one or more requests. `input` includes cached tokens, and `output` includes reasoning.
         *
         *     `cost` is in US dollars. None means that the price is unknown, which differs from free. Models that make
         *     images, transcribe or speak are billed by other units: images, seconds of audio, characters spoken.
         */
        Usage: {
            /** @default 0 */
            input: number;
            /** @default 0 */
            output: number;
            /** @default 0 */
            cached: number;
            /** @default 0 */
            cache_written: number;
            /** @default 0 */
            reasoning: number;
            cost: number | null;
            /** @default 0 */
            images: number;
            /** @default 0 */
            seconds: number;
            /** @default 0 */
            characters: number;
        };
        /** @description Usage. `rows` is set if the request names dimensions. `cost` does not include `unpriced` replies. */
        UsageView: {
            total: components["schemas"]["Usage"];
            models: components["schemas"]["ModelSpent"][];
            days: components["schemas"]["DaySpent"][];
            rows: components["schemas"]["Spending"][];
        };
        /** @description A model with its prompt and agent, and how it did. */
        VariantLine: {
            variant: string;
            passed: number;
            total: number;
            low: number;
            high: number;
            every_time: number;
            better: number;
            worse: number;
            tokens: number;
            cost: number | null;
            seconds: number;
        };
        /** @description One vote of a judge. */
        Vote: {
            passed: boolean;
            reason: string;
        };
        /** @description An approval request or question to a user, from its start to its answer. */
        Wait: {
            question: string;
            kind: string;
            because: string | null;
            asked: number;
            answered: number | null;
            verdict: string | null;
            by: string | null;
            scope: string | null;
        };
        /** @description A way to sign in other than a password, a key or a link. */
        WaysToSignIn: {
            provider: string | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type AgentBody = components['schemas']['AgentBody'];
export type AgentCall = components['schemas']['AgentCall'];
export type AgentList = components['schemas']['AgentList'];
export type AgentMessage = components['schemas']['AgentMessage'];
export type AgentSetup = components['schemas']['AgentSetup'];
export type AgentSetupList = components['schemas']['AgentSetupList'];
export type AgentTool = components['schemas']['AgentTool'];
export type AgentView = components['schemas']['AgentView'];
export type Answer = components['schemas']['Answer'];
export type AnswerLine = components['schemas']['AnswerLine'];
export type Answered = components['schemas']['Answered'];
export type Approval = components['schemas']['Approval'];
export type AuditEntry = components['schemas']['AuditEntry'];
export type AuditLog = components['schemas']['AuditLog'];
export type Because = components['schemas']['Because'];
export type Begun = components['schemas']['Begun'];
export type CallAnswered = components['schemas']['CallAnswered'];
export type CallAsked = components['schemas']['CallAsked'];
export type CallEnd = components['schemas']['CallEnd'];
export type CallInfo = components['schemas']['CallInfo'];
export type CallInputDelta = components['schemas']['CallInputDelta'];
export type CallInputEnd = components['schemas']['CallInputEnd'];
export type CallInputStart = components['schemas']['CallInputStart'];
export type CallProgress = components['schemas']['CallProgress'];
export type CallStart = components['schemas']['CallStart'];
export type CallState = components['schemas']['CallState'];
export type CallTrace = components['schemas']['CallTrace'];
export type CalledFunction = components['schemas']['CalledFunction'];
export type Cancel = components['schemas']['Cancel'];
export type Cancelled = components['schemas']['Cancelled'];
export type CaseLine = components['schemas']['CaseLine'];
export type ChosenHunk = components['schemas']['ChosenHunk'];
export type ChosenHunks = components['schemas']['ChosenHunks'];
export type CitationInput = components['schemas']['Citation-Input'];
export type CitationOutput = components['schemas']['Citation-Output'];
export type ClientTool = components['schemas']['ClientTool'];
export type CompactionTrace = components['schemas']['CompactionTrace'];
export type ConfirmedServer = components['schemas']['ConfirmedServer'];
export type ContextEntry = components['schemas']['ContextEntry'];
export type ContextShare = components['schemas']['ContextShare'];
export type ContextUse = components['schemas']['ContextUse'];
export type ConversationChange = components['schemas']['ConversationChange'];
export type ConversationChanged = components['schemas']['ConversationChanged'];
export type ConversationDeleted = components['schemas']['ConversationDeleted'];
export type ConversationSettings = components['schemas']['ConversationSettings'];
export type ConversationSummary = components['schemas']['ConversationSummary'];
export type CoveredCalls = components['schemas']['CoveredCalls'];
export type Credentials = components['schemas']['Credentials'];
export type CurrentModel = components['schemas']['CurrentModel'];
export type DaySpent = components['schemas']['DaySpent'];
export type Decision = components['schemas']['Decision'];
export type DiffView = components['schemas']['DiffView'];
export type Done = components['schemas']['Done'];
export type Download = components['schemas']['Download'];
export type DownloadSetup = components['schemas']['DownloadSetup'];
export type Edit = components['schemas']['Edit'];
export type Error = components['schemas']['Error'];
export type ErrorRaised = components['schemas']['ErrorRaised'];
export type EvaluatedCase = components['schemas']['EvaluatedCase'];
export type EvaluationLine = components['schemas']['EvaluationLine'];
export type EvaluationView = components['schemas']['EvaluationView'];
export type FileInput = components['schemas']['File-Input'];
export type FileOutput = components['schemas']['File-Output'];
export type FileAdded = components['schemas']['FileAdded'];
export type FileDiff = components['schemas']['FileDiff'];
export type FilePartial = components['schemas']['FilePartial'];
export type FilledPrompt = components['schemas']['FilledPrompt'];
export type FolderTrust = components['schemas']['FolderTrust'];
export type FolderTrustList = components['schemas']['FolderTrustList'];
export type Fork = components['schemas']['Fork'];
export type GrantList = components['schemas']['GrantList'];
export type GrantView = components['schemas']['GrantView'];
export type GroupList = components['schemas']['GroupList'];
export type GroupView = components['schemas']['GroupView'];
export type InnerCallMade = components['schemas']['InnerCallMade'];
export type ItemAdded = components['schemas']['ItemAdded'];
export type JsonValue = components['schemas']['JsonValue'];
export type Link = components['schemas']['Link'];
export type ListReset = components['schemas']['ListReset'];
export type LiveEvent = components['schemas']['LiveEvent'];
export type MadeCall = components['schemas']['MadeCall'];
export type MadeIn = components['schemas']['MadeIn'];
export type Me = components['schemas']['Me'];
export type MemberList = components['schemas']['MemberList'];
export type MemberRole = components['schemas']['MemberRole'];
export type MemberView = components['schemas']['MemberView'];
export type Message = components['schemas']['Message'];
export type MessageAdded = components['schemas']['MessageAdded'];
export type MessageBody = components['schemas']['MessageBody'];
export type MessageEnd = components['schemas']['MessageEnd'];
export type Met = components['schemas']['Met'];
export type ModelList = components['schemas']['ModelList'];
export type ModelSpent = components['schemas']['ModelSpent'];
export type ModelView = components['schemas']['ModelView'];
export type NamedPrompt = components['schemas']['NamedPrompt'];
export type NewConversation = components['schemas']['NewConversation'];
export type NewDownload = components['schemas']['NewDownload'];
export type NewGrant = components['schemas']['NewGrant'];
export type NewInvitation = components['schemas']['NewInvitation'];
export type NewKey = components['schemas']['NewKey'];
export type NewLink = components['schemas']['NewLink'];
export type NewOwner = components['schemas']['NewOwner'];
export type NewProvider = components['schemas']['NewProvider'];
export type NewRating = components['schemas']['NewRating'];
export type NewServer = components['schemas']['NewServer'];
export type NewShareView = components['schemas']['NewShareView'];
export type NewTurn = components['schemas']['NewTurn'];
export type Notice = components['schemas']['Notice'];
export type OfferedModel = components['schemas']['OfferedModel'];
export type Origin = components['schemas']['Origin'];
export type Page = components['schemas']['Page'];
export type PartialCall = components['schemas']['PartialCall'];
export type PastCall = components['schemas']['PastCall'];
export type PresenceChanged = components['schemas']['PresenceChanged'];
export type PresenceView = components['schemas']['PresenceView'];
export type PresentUser = components['schemas']['PresentUser'];
export type Price = components['schemas']['Price'];
export type Problem = components['schemas']['Problem'];
export type Prompt = components['schemas']['Prompt'];
export type PromptArguments = components['schemas']['PromptArguments'];
export type PromptList = components['schemas']['PromptList'];
export type ProviderData = components['schemas']['ProviderData'];
export type ProviderItem = components['schemas']['ProviderItem'];
export type ProviderSetup = components['schemas']['ProviderSetup'];
export type ProviderSetupList = components['schemas']['ProviderSetupList'];
export type ProviderTest = components['schemas']['ProviderTest'];
export type ProviderView = components['schemas']['ProviderView'];
export type Question = components['schemas']['Question'];
export type QuestionAsked = components['schemas']['QuestionAsked'];
export type QuestionList = components['schemas']['QuestionList'];
export type QueueChanged = components['schemas']['QueueChanged'];
export type QueueOrder = components['schemas']['QueueOrder'];
export type QueueView = components['schemas']['QueueView'];
export type QueuedTurn = components['schemas']['QueuedTurn'];
export type RatingView = components['schemas']['RatingView'];
export type Reasoning = components['schemas']['Reasoning'];
export type ReasoningDelta = components['schemas']['ReasoningDelta'];
export type ReasoningEnd = components['schemas']['ReasoningEnd'];
export type ReasoningStart = components['schemas']['ReasoningStart'];
export type Redo = components['schemas']['Redo'];
export type Remark = components['schemas']['Remark'];
export type RequestTrace = components['schemas']['RequestTrace'];
export type Rerun = components['schemas']['Rerun'];
export type RerunCall = components['schemas']['RerunCall'];
export type Result = components['schemas']['Result'];
export type ResumeEntry = components['schemas']['ResumeEntry'];
export type Returned = components['schemas']['Returned'];
export type Revert = components['schemas']['Revert'];
export type RevertView = components['schemas']['RevertView'];
export type RuleInput = components['schemas']['Rule-Input'];
export type RuleOutput = components['schemas']['Rule-Output'];
export type RuleDecision = components['schemas']['RuleDecision'];
export type RuleList = components['schemas']['RuleList'];
export type RuleView = components['schemas']['RuleView'];
export type RunAgentInput = components['schemas']['RunAgentInput'];
export type SaidInput = components['schemas']['Said-Input'];
export type SaidOutput = components['schemas']['Said-Output'];
export type ServerLogin = components['schemas']['ServerLogin'];
export type ServerPlan = components['schemas']['ServerPlan'];
export type ServerPromptList = components['schemas']['ServerPromptList'];
export type ServerPromptView = components['schemas']['ServerPromptView'];
export type ServerSetup = components['schemas']['ServerSetup'];
export type ServerSetupList = components['schemas']['ServerSetupList'];
export type ServerTool = components['schemas']['ServerTool'];
export type ShareList = components['schemas']['ShareList'];
export type ShareView = components['schemas']['ShareView'];
export type SharedConversation = components['schemas']['SharedConversation'];
export type SharedMessage = components['schemas']['SharedMessage'];
export type SharedPart = components['schemas']['SharedPart'];
export type SignedOut = components['schemas']['SignedOut'];
export type SkillBody = components['schemas']['SkillBody'];
export type SkillSetup = components['schemas']['SkillSetup'];
export type SkillSetupList = components['schemas']['SkillSetupList'];
export type Spending = components['schemas']['Spending'];
export type SteeringMessage = components['schemas']['SteeringMessage'];
export type StepEnd = components['schemas']['StepEnd'];
export type StepModel = components['schemas']['StepModel'];
export type StepRetry = components['schemas']['StepRetry'];
export type StepStart = components['schemas']['StepStart'];
export type StepTrace = components['schemas']['StepTrace'];
export type Summary = components['schemas']['Summary'];
export type TextInput = components['schemas']['Text-Input'];
export type TextOutput = components['schemas']['Text-Output'];
export type TextCited = components['schemas']['TextCited'];
export type TextDelta = components['schemas']['TextDelta'];
export type TextEnd = components['schemas']['TextEnd'];
export type TextStart = components['schemas']['TextStart'];
export type Token = components['schemas']['Token'];
export type ToolCall = components['schemas']['ToolCall'];
export type ToolResult = components['schemas']['ToolResult'];
export type ToolRun = components['schemas']['ToolRun'];
export type ToolSpec = components['schemas']['ToolSpec'];
export type ToolView = components['schemas']['ToolView'];
export type Totals = components['schemas']['Totals'];
export type TraceView = components['schemas']['TraceView'];
export type TreeView = components['schemas']['TreeView'];
export type TrustDecision = components['schemas']['TrustDecision'];
export type TurnEnd = components['schemas']['TurnEnd'];
export type TurnError = components['schemas']['TurnError'];
export type TurnEvent = components['schemas']['TurnEvent'];
export type TurnInfo = components['schemas']['TurnInfo'];
export type TurnStart = components['schemas']['TurnStart'];
export type TurnState = components['schemas']['TurnState'];
export type TurnTrace = components['schemas']['TurnTrace'];
export type Typing = components['schemas']['Typing'];
export type UiChatBody = components['schemas']['UIChatBody'];
export type UiMessage = components['schemas']['UIMessage'];
export type UiPart = components['schemas']['UIPart'];
export type UnfinishedTurn = components['schemas']['UnfinishedTurn'];
export type UploadLimits = components['schemas']['UploadLimits'];
export type Usage = components['schemas']['Usage'];
export type UsageView = components['schemas']['UsageView'];
export type VariantLine = components['schemas']['VariantLine'];
export type Vote = components['schemas']['Vote'];
export type Wait = components['schemas']['Wait'];
export type WaysToSignIn = components['schemas']['WaysToSignIn'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
