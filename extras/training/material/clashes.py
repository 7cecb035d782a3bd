"""Tools that could be right for the same request, and must not be offered together."""

from __future__ import annotations

# Tools of the material that do the same as a built-in group.
CLASHES = {
    "files": (
        *(
            "take_note",
            "append_to_note",
            "search_notes",
            "create_document",
            "search_code",
            "search_logs",
            "scan_document",
        ),
        *(
            "find_note",
            "sync_folder",
            "git_diff",
            "git_blame",
            "run_linter",
            "format_code",
            "describe_table",
            "book_search",
        ),
        *("copy_file", "move_file", "delete_path", "search_documents", "disk_usage", "compress_file"),
    ),
    "basics": (
        *(
            "take_note",
            "statistics",
            "add_to_date",
            "days_between",
            "mortgage_calculator",
            "translate_units",
            "solve_equation",
        ),
        *(
            "timezone_difference",
            "timestamp_convert",
            "medication_reminder",
            "assign_chore",
            "add_to_shopping_list",
        ),
        *(
            "remove_from_shopping_list",
            "show_shopping_list",
            "tax_estimate",
            "prime_check",
            "scale_recipe",
            "average",
        ),
        *(
            "homework_add",
            "convert_money",
            "list_events",
            "log_workout",
            "number_to_words",
            "convert_base",
            "set_cell",
        ),
        *(
            "split_bill",
            "average",
            "create_task",
            "list_tasks",
            "create_reminder",
            "tip_amount",
            "growth_rate",
        ),
        *("discount_price", "sales_tax", "gcd", "rectangle_area", "speed", "convert_units", "delete_task"),
    ),
    "web": (
        "wiki_lookup",
        "web_search",
        "news_headlines",
        "http_request",
        "wikipedia_summary",
        "summarize_text",
    ),
    "shell": (
        *(
            "run_python",
            "install_package",
            "kill_process",
            "list_processes",
            "git_push",
            "git_tag",
            "checkout_branch",
        ),
        *(
            "git_diff",
            "git_blame",
            "run_linter",
            "format_code",
            "copy_file",
            "move_file",
            "delete_path",
            "unzip",
            "sync_folder",
        ),
        "run_tests",
        "git_commit",
        "list_commits",
        "system_info",
        "disk_usage",
        "ping_host",
        "schedule_job",
    ),
}

# Domains that users' everyday requests belong to.
EVERYDAY = frozenset(
    (
        *("weather", "travel", "money", "messages", "home", "media", "food", "knowledge", "text", "numbers"),
        *(
            "computers",
            "chance",
            "shops",
            "health",
            "sport",
            "calendar",
            "mail",
            "chat",
            "documents",
            "people",
        ),
        *(
            "sales",
            "projects",
            "smart home",
            "kitchen",
            "trips",
            "purchases",
            "family",
            "cloud",
            "code",
            "finance",
        ),
        *("facts", "culture", "learning", "public", "notices", "hours"),
    )
)
# Domains with tools so similar that one can do the work of another.
MIXED = frozenset(
    (
        *("weather", "travel", "money", "messages", "home", "media", "food", "knowledge", "text", "numbers"),
        *("facts", "sport"),
    )
)
# Domains with a tool that looks things up, or that listens.
ANSWERS = frozenset(("knowledge", "computers", "facts", "culture", "health", "learning", "media", "public"))
# Words in names that do not describe a tool.
GENERAL_WORDS = frozenset(
    (
        *("get", "set", "find", "search", "list", "create", "add", "new", "send", "book", "make", "start"),
        *("info", "show", "check", "update", "delete", "remove", "record", "log", "all", "count", "number", "fetch"),
        *("change", "edit", "cancel", "details", "of", "to", "for", "in", "by", "is", "my", "the"),
        *("a", "what", "where", "who", "how", "next", "recent", "now", "today", "open", "call", "run"),
        *("file", "system", "data", "id", "report", "status", "state", "convert", "compute", "calculate", "value", "values"),
        *("text", "time", "place", "item", "items", "and", "on"),
    )
)  # fmt: skip
