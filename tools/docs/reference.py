"""Writes the pages of the site that the repository does not contain: the alerts and the APIs.

usage: reference.py ALERTS.yaml FOLDER-OF-OPENAPI-DOCUMENTS FOLDER-OF-PAGES
"""

import json
import pathlib
import sys

import yaml


def cell(text):
    """Returns a text as the content of one cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def code(text):
    """Returns a text as code in one cell of a Markdown table."""
    return "`" + cell(text) + "`"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def alerts_page(rules):
    """Returns the page of the alert rules, which link to their runbooks."""
    rows = []
    for group in rules["groups"]:
        for rule in group["rules"]:
            if "alert" not in rule:  # a recording rule
                continue
            name = rule["alert"]
            rows.append([
                f"[{name}](../runbooks.md#{name.lower()})",
                cell(rule["labels"]["severity"]),
                cell(rule["annotations"]["summary"]),
                code(rule["expr"]),
                cell(rule.get("for", "at once")),
            ])
    return (
        "# Alerts\n\n"
        "These are the rules of [alerts.yaml](../../deploy/monitoring/alerts.yaml). "
        "The severity `page` means: act now; `ticket` means: act within a day.\n\n"
        + table(["Alert", "Severity", "Summary", "Condition", "For"], rows)
    )


def api_page(name, document):
    """Returns the page of an API: a table of its operations, which the search finds, and the whole document."""
    prefix = document["servers"][0]["url"].rstrip("/")
    rows = []
    for path, operations in sorted(document["paths"].items()):
        for method, operation in operations.items():
            if isinstance(operation, dict) and "responses" in operation:
                rows.append([method.upper(), code(prefix + path), cell(operation.get("summary", ""))])
    info = document["info"]
    return (
        f"# {info['title']}\n\n{info.get('description', '')}\n\n"
        f"A process with the role `api` serves the OpenAPI document at `/openapi/{name}.json`; "
        f"here it is as [{name}.json]({name}.json).\n\n"
        "## Operations\n\n" + table(["Method", "Path", "Operation"], rows) +
        f'\n## Bodies and parameters\n\n<swagger-ui src="{name}.json"/>\n'
    )


def main(alerts, documents, pages):
    pages = pathlib.Path(pages)
    pages.mkdir(parents=True)
    (pages / "alerts.md").write_text(alerts_page(yaml.safe_load(pathlib.Path(alerts).read_text())))
    for file in sorted(pathlib.Path(documents).glob("*.json")):
        document = json.loads(file.read_text())
        document.pop("jsonSchemaDialect", None)  # Swagger UI warns of any dialect, also of the one that it has
        (pages / file.name).write_text(json.dumps(document, indent=2))
        (pages / f"{file.stem}.md").write_text(api_page(file.stem, document))


main(*sys.argv[1:])
