import highlighter from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import go from 'highlight.js/lib/languages/go'
import http from 'highlight.js/lib/languages/http'
import json from 'highlight.js/lib/languages/json'
import python from 'highlight.js/lib/languages/python'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import { escapeHtml } from '../reference/html.ts'

for (const [name, language] of Object.entries({ bash, go, http, json, python, sql, typescript }))
  highlighter.registerLanguage(name, language)

/** Languages by the names that the guides use after a code fence. */
const languages: Readonly<Record<string, string | undefined>> = {
  sh: 'bash',
  js: 'typescript',
  ts: 'typescript',
  json: 'json',
  python: 'python',
  go: 'go',
  sql: 'sql',
  http: 'http',
}

/** Returns code as HTML with a `span` around each token. The text of a language that is not known is only escaped. */
export function highlighted(text: string, fenceName: string): string {
  const language = languages[fenceName]
  return language === undefined ? escapeHtml(text) : highlighter.highlight(text, { language }).value
}
