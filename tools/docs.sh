#!/bin/sh
# Builds the site of the documentation into a folder, by default bin/docs: the Markdown pages of the repository, and the pages that
# tools/docs/reference.py makes of the alert rules and the OpenAPI documents. A dead link fails the build.
#   tools/docs.sh [FOLDER]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "${1:-$root/bin/docs}"
site=$(cd "${1:-$root/bin/docs}" && pwd)
cd "$root"
python=$(tools/venv.sh docs)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The pages and the files to which they link, at their own paths.
git ls-files -co --exclude-standard -- '*.md' docs/images deploy/monitoring/alerts.yaml internal/api/console/static/icon.svg LICENSE NOTICE |
	tar -cf - -T - | (mkdir "$work/pages" && tar -xf - -C "$work/pages")
cp tools/docs/site.css "$work/pages"
mkdir "$work/openapi"
go test -count 1 ./internal/server -run TestOpenAPI_DocumentsOfAllAPIs -openapi "$work/openapi" >"$work/log" 2>&1 || { cat "$work/log" >&2 && exit 1; }
"$python" tools/docs/reference.py deploy/monitoring/alerts.yaml "$work/openapi" "$work/pages/docs/reference"
NO_MKDOCS_2_WARNING=true BERTH_DOCS_PAGES=$work/pages BERTH_DOCS_SITE=$work/site "$python" -m mkdocs build -f tools/docs/mkdocs.yml >"$work/log" 2>&1 ||
	{ grep -E 'WARNING|ERROR|Aborted|Error' "$work/log" >&2 || cat "$work/log" >&2; exit 1; }

# The browser must load nothing from other servers.
if grep -rlE '<(script|img|iframe|source)[^>]* src="?(https?:)?//|<link[^>]*rel="?(stylesheet|icon|preconnect|preload)"?[^>]* href="?(https?:)?//' "$work/site" --include='*.html' >"$work/foreign"; then
	echo "docs.sh: these pages load files from other servers:" >&2
	cat "$work/foreign" >&2
	exit 1
fi
rm -rf "$site"
mv "$work/site" "$site"
echo "the site is in $site; python3 -m http.server -d $site serves it"
