import { escapeHtml } from '../reference/html.ts'
import { highlighted } from './highlight.ts'

/** Returns the target of a link of the page: an address of the service or another site; undefined for a file that is not served. */
export type LinkTarget = (href: string) => string | undefined

/** A rendered page. */
export interface Rendered {
  readonly html: string
  readonly headings: readonly Heading[]
}

interface Heading {
  readonly level: number
  readonly id: string
  /** Plain text. */
  readonly text: string
}

interface Reader {
  readonly lines: readonly string[]
  readonly target: LinkTarget
  readonly headings: Heading[]
}

/** A block that starts at a line: its HTML, and the line after it. */
interface Block {
  readonly html: string
  readonly next: number
}

/**
 * Renders the Markdown that `docs/` uses: headings, paragraphs, lists, tables, fenced code, and inline code, emphasis and links. All other
 * text is shown as it is, so HTML in a page cannot become markup.
 */
export function renderMarkdown(markdown: string, target: LinkTarget): Rendered {
  const reader: Reader = { lines: markdown.split('\n'), target, headings: [] }
  const parts: string[] = []
  let at = 0
  while (at < reader.lines.length) {
    const block = blockAt(reader, at)
    parts.push(block.html)
    at = block.next
  }
  return { html: parts.filter((part) => part !== '').join('\n'), headings: reader.headings }
}

const fence = /^```(\w*)$/
const heading = /^(#{1,6}) (.+)$/
const bullet = /^- /
const numbered = /^\d+\. /

function blockAt(reader: Reader, at: number): Block {
  const line = lineAt(reader, at)
  if (line.trim() === '') return { html: '', next: at + 1 }
  if (fence.test(line)) return codeAt(reader, at)
  if (heading.test(line)) return headingAt(reader, at)
  if (isTable(reader, at)) return tableAt(reader, at)
  if (bullet.test(line)) return listAt(reader, at, { tag: 'ul', marker: bullet })
  if (numbered.test(line)) return listAt(reader, at, { tag: 'ol', marker: numbered })
  return paragraphAt(reader, at)
}

function lineAt({ lines }: Reader, at: number): string {
  return lines[at] ?? ''
}

/** The first line from `at` for which the test holds, or the end of the page. */
function lineWhere({ lines }: Reader, at: number, test: (line: string, index: number) => boolean): number {
  const found = lines.findIndex((line, index) => index >= at && test(line, index))
  return found === -1 ? lines.length : found
}

function codeAt(reader: Reader, at: number): Block {
  const end = lineWhere(reader, at + 1, (line) => line === '```')
  const text = reader.lines.slice(at + 1, end).join('\n')
  const shown = highlighted(text, fence.exec(lineAt(reader, at))?.[1] ?? '')
  return { html: `<div class="code"><pre tabindex="0"><code>${shown}</code></pre></div>`, next: end + 1 }
}

function headingAt(reader: Reader, at: number): Block {
  const [, marks = '', markdown = ''] = heading.exec(lineAt(reader, at)) ?? []
  const text = plain(markdown)
  const id = freeId(reader, slugOf(text))
  const level = marks.length
  reader.headings.push({ level, id, text })
  const anchor = level === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`
  return { html: `<h${level} id="${id}">${inline(markdown, reader.target)}${anchor}</h${level}>`, next: at + 1 }
}

/** The anchor of a heading as GitHub makes it, so that one link works in both places. */
function slugOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function freeId({ headings }: Reader, slug: string): string {
  const count = headings.filter(({ id }) => id === slug || id.replace(/-\d+$/, '') === slug).length
  return count === 0 ? slug : `${slug}-${count}`
}

function plain(markdown: string): string {
  return markdown.replaceAll(/[`*]/g, '').replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
}

function isTable(reader: Reader, at: number): boolean {
  return lineAt(reader, at).startsWith('|') && /^\|[\s:|-]+\|$/.test(lineAt(reader, at + 1))
}

function tableAt(reader: Reader, at: number): Block {
  const end = lineWhere(reader, at, (line) => !line.startsWith('|'))
  const rows = reader.lines.slice(at, end).map(cellsOf)
  const [head = [], , ...body] = rows
  const cells = (tag: string, row: readonly string[]): string =>
    `<tr>${row.map((cell) => `<${tag}>${inline(cell, reader.target)}</${tag}>`).join('')}</tr>`
  const named = head.some((cell) => cell !== '') ? `<thead>${cells('th', head)}</thead>` : ''
  const lines = body.map((row) => cells('td', row)).join('\n')
  const label = escapeHtml(plain(head.filter((cell) => cell !== '').join(', ')) || 'Table')
  return {
    html: `<div class="scrolls" role="region" tabindex="0" aria-label="${label}"><table>${named}<tbody>${lines}</tbody></table></div>`,
    next: end,
  }
}

/** The cells of a row; a bar after a backslash is text. */
function cellsOf(row: string): string[] {
  const inner = row.trim().replace(/^\|/, '').replace(/\|$/, '')
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
}

function listAt(reader: Reader, at: number, { tag, marker }: { readonly tag: string; readonly marker: RegExp }): Block {
  const end = lineWhere(reader, at, (line, index) => {
    const isInside = marker.test(line) || /^ {2,}\S/.test(line)
    // A blank line between two items does not end the list.
    return !isInside && !(line === '' && marker.test(lineAt(reader, index + 1)))
  })
  const items: string[] = []
  for (const line of reader.lines.slice(at, end).filter((one) => one !== '')) {
    if (marker.test(line)) items.push(line.replace(marker, ''))
    else items.push(`${items.pop() ?? ''} ${line.trim()}`)
  }
  const shown = items.map((item) => `<li>${inline(item, reader.target)}</li>`).join('\n')
  return { html: `<${tag}>${shown}</${tag}>`, next: end }
}

function paragraphAt(reader: Reader, at: number): Block {
  const startsBlock = (line: string, index: number): boolean =>
    line.trim() === '' ||
    fence.test(line) ||
    heading.test(line) ||
    bullet.test(line) ||
    numbered.test(line) ||
    isTable(reader, index)
  const end = lineWhere(reader, at + 1, startsBlock)
  return { html: `<p>${inline(reader.lines.slice(at, end).join('\n'), reader.target)}</p>`, next: end }
}

/** Inline code first, since nothing is marked up in it. */
function inline(markdown: string, target: LinkTarget): string {
  const codes: string[] = []
  // A control character, which no page contains, is the placeholder of each code.
  const kept = markdown.replaceAll(/`([^`]+)`/g, (_, text: string) => `\u0001${codes.push(text) - 1}\u0001`)
  return escapeHtml(kept)
    .replaceAll(/\[([^\]]+)\]\(([^()\s]+)\)/g, (_, text: string, href: string) => linked(text, target(href)))
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
    .replaceAll(/(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])/g, '<em>$1</em>')
    .replaceAll(/\u0001(\d+)\u0001/g, (_, index: string) => `<code>${escapeHtml(codes[Number(index)] ?? '')}</code>`)
}

function linked(text: string, href: string | undefined): string {
  return href === undefined ? text : `<a href="${href}">${text}</a>`
}
