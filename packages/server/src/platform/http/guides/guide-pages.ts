import { type ErrorTable, failPlatform } from '../../errors.ts'
import type { RawAnswer } from '../call.ts'
import { keptPages } from '../encoded.ts'
import type { PageRequest, PublicPage } from '../public-page.ts'
import { code, escapeHtml, htmlHeaders, page, prose } from '../reference/html.ts'
import { type Guide, groups, linkTarget, readGuides } from './guides.ts'
import { type Rendered, renderMarkdown } from './markdown.ts'

export interface GuideOptions {
  readonly baseUrl: string
  readonly errors: ErrorTable
  /** The tags of the operations; each has its own OpenAPI document. */
  readonly tags: () => readonly { readonly name: string; readonly description: string }[]
  /** The whole API reference, as HTML. */
  readonly reference: () => string
  /** The answer for an address where nothing is. */
  readonly missing: () => RawAnswer
}

const markdownHeaders = { 'content-type': 'text/markdown; charset=utf-8' }
const textHeaders = { 'content-type': 'text/plain; charset=utf-8' }
const claim = 'Payment and wallet infrastructure for AI agents: x402 and MPP, managed wallets, vaults, webhooks.'

/**
 * The documentation of the service, made from the pages of the repository: `/`, `/llms.txt`, `/llms-full.txt`, `/robots.txt`, and under
 * `/docs` the guides as HTML and Markdown, the reference and a page for each error code. Each is rendered when it is first requested.
 */
export function guidePages(options: GuideOptions): PublicPage[] {
  let guides: ReadonlyMap<string, Guide> | undefined
  const read = (): ReadonlyMap<string, Guide> => {
    guides ??= readGuides()
    return guides
  }
  const [html, markdown, text] = [keptPages(htmlHeaders), keptPages(markdownHeaders), keptPages(textHeaders)]
  const guideAnswer = (requested: string, request: PageRequest): RawAnswer => {
    const guide = read().get(requested.replace(/\.md$/, ''))
    if (guide === undefined) return options.missing()
    if (requested.endsWith('.md') || prefersMarkdown(request))
      return markdown(guide.name, () => guide.markdown)(request)
    return html(guide.name, () => guidePage(read(), guide))(request)
  }
  const errorAnswer = (requested: string, request: PageRequest): RawAnswer => {
    const entry = Object.hasOwn(options.errors, requested) ? options.errors[requested] : undefined
    return entry === undefined
      ? options.missing()
      : html(`errors/${requested}`, () => errorPage(read(), requested, entry))(request)
  }
  const llms = (): string => llmsText(read(), options)
  return [
    {
      path: '/',
      answer: (_, request) =>
        /\btext\/html\b/.test(request.headers.accept ?? '')
          ? html('/', () => indexPage(read()))(request)
          : markdown('/', llms)(request),
    },
    { path: '/llms.txt', answer: (_, request) => text('/llms.txt', llms)(request) },
    { path: '/llms-full.txt', answer: (_, request) => text('/llms-full.txt', () => fullText(read()))(request) },
    { path: '/robots.txt', answer: (_, request) => text('/robots.txt', () => robots)(request) },
    { path: '/docs', answer: (_, request) => html('/', () => indexPage(read()))(request) },
    { path: '/docs/reference', answer: (_, request) => html('reference', options.reference)(request) },
    { path: '/docs/errors/:code', answer: ({ code: name }, request) => errorAnswer(name ?? '', request) },
    { path: '/problems/:code', answer: ({ code: name }, request) => errorAnswer(name ?? '', request) },
    {
      path: '/docs/decisions',
      answer: (_, request) => html('decisions', () => decisionsPage(read()))(request),
    },
    { path: '/docs/*', answer: ({ '*': name }, request) => guideAnswer(name ?? '', request) },
  ]
}

const robots = 'User-agent: *\nAllow: /$\nAllow: /docs\nAllow: /llms\nAllow: /openapi\nDisallow: /\n'

/** A browser names HTML; an agent that wants Markdown names it, and no HTML. */
function prefersMarkdown({ headers: { accept = '' } }: PageRequest): boolean {
  return /\btext\/(?:markdown|plain)\b/.test(accept) && !/\btext\/html\b/.test(accept)
}

function guidesIn(guides: ReadonlyMap<string, Guide>, names: readonly string[]): Guide[] {
  return names.flatMap((name) => guides.get(name) ?? [])
}

function llmsText(guides: ReadonlyMap<string, Guide>, { baseUrl, tags }: GuideOptions): string {
  const documents = tags().map(
    ({ name, description }) => `- [${name}](${baseUrl}/openapi/${name}.json): ${description}`,
  )
  const parts = groups.map(([title, names]) => {
    const lines = guidesIn(guides, names).map(
      (guide) => `- [${guide.title}](${baseUrl}/docs/${guide.name}.md): ${guide.summary}`,
    )
    return `## ${title}\n\n${lines.join('\n')}\n`
  })
  return `# Purser

> ${claim}

The API is HTTP and JSON at ${baseUrl}. Requests carry \`Authorization: Bearer <API key>\`. A key that begins with \`svc_test_sk_\` moves test money only.
The \`type\` of a refusal is the address of a page about its cause. Every page below is Markdown; without \`.md\` it is HTML.

## API

- [OpenAPI](${baseUrl}/openapi.json): Every operation, event and error, with schemas.
- [Reference](${baseUrl}/docs/reference): The same as one HTML page.
- [All guides](${baseUrl}/llms-full.txt): The text of the pages below in one file.

## OpenAPI by tag

${documents.join('\n')}

${parts.join('\n')}`
}

/** Every guide that explains how to use the service, one after the other. */
function fullText(guides: ReadonlyMap<string, Guide>): string {
  const names = groups.flatMap(([, members]) => members).filter((name) => name !== 'CHANGELOG')
  return guidesIn(guides, names)
    .map(({ name, markdown }) => `<!-- /docs/${name}.md -->\n\n${markdown.trim()}\n`)
    .join('\n')
}

/** The list of all guides beside each page. */
function navigation(guides: ReadonlyMap<string, Guide>, current: string): string {
  const parts = groups.map(([title, names]) => {
    const items = guidesIn(guides, names).map(({ name, title: text }) => {
      const here = name === current ? ' aria-current="page"' : ''
      return `<li><a href="/docs/${name}"${here}>${escapeHtml(name === 'README' ? 'Overview' : text)}</a></li>`
    })
    return `<h2>${escapeHtml(title)}</h2><ul>${items.join('')}</ul>`
  })
  return `<nav class="side" aria-label="Guides"><p><a href="/docs"><strong>Purser</strong></a></p><p><a href="/docs/reference">API reference</a></p>${parts.join('')}</nav>`
}

function withNavigation(
  guides: ReadonlyMap<string, Guide>,
  shown: { readonly title: string; readonly body: string; readonly current?: string },
): string {
  const { title, body, current = '' } = shown
  const skip = '<a class="skip" href="#content">Skip to the content</a>'
  return page(
    `${title} · Purser`,
    `${skip}<div class="guide"><main id="content">${body}</main>${navigation(guides, current)}</div>`,
  )
}

/** The HTML of a guide, with links that lead to the other guides. */
export function renderGuide(guides: ReadonlyMap<string, Guide>, { name, markdown }: Guide): Rendered {
  return renderMarkdown(markdown, (href) => linkTarget(guides, name, href))
}

function guidePage(guides: ReadonlyMap<string, Guide>, guide: Guide): string {
  const { html, headings } = renderGuide(guides, guide)
  const sections = headings.filter(({ level }) => level === 2)
  const items = sections.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`)
  const contents =
    sections.length < 4
      ? ''
      : `<details class="contents"><summary>On this page</summary><ul>${items.join('')}</ul></details>`
  const source = `<p><small><a href="/docs/${guide.name}.md">This page as Markdown</a></small></p>`
  const body = html.replace('</h1>', () => `</h1>${contents}`)
  return withNavigation(guides, { title: guide.title, body: body + source, current: guide.name })
}

function indexPage(guides: ReadonlyMap<string, Guide>): string {
  const parts = groups.map(([title, names]) => {
    const items = guidesIn(guides, names).map(
      ({ name, title: text, summary }) =>
        `<dt><a href="/docs/${name}">${escapeHtml(text)}</a></dt><dd>${prose(summary)}</dd>`,
    )
    return `<h2>${escapeHtml(title)}</h2><dl>${items.join('')}</dl>`
  })
  const body = `<h1>Purser</h1><p>${escapeHtml(claim)}</p>
<ul><li>To begin: <a href="/docs/quick-start">quick start</a>, or the <a href="/docs/reference">API reference</a>.</li>
<li>For agents: <a href="/llms.txt">/llms.txt</a>, <a href="/llms-full.txt">/llms-full.txt</a> and <a href="/openapi.json">/openapi.json</a>.</li>
<li>For people who run an organisation: the <a href="/dashboard">dashboard</a>.</li></ul>${parts.join('')}`
  return withNavigation(guides, { title: 'Documentation', body })
}

function decisionsPage(guides: ReadonlyMap<string, Guide>): string {
  const decisions = [...guides.values()].filter(({ name }) => name.startsWith('decisions/'))
  const items = decisions
    .toSorted((left, right) => left.name.localeCompare(right.name))
    .map(({ name, title }) => `<li><a href="/docs/${name}">${escapeHtml(title)}</a></li>`)
  return withNavigation(guides, { title: 'Decisions', body: `<h1>Decisions</h1><ul>${items.join('')}</ul>` })
}

function errorPage(guides: ReadonlyMap<string, Guide>, name: string, entry: ErrorTable[string]): string {
  const isAnywhere = Object.hasOwn(failPlatform.table, name)
  const next =
    entry.status >= 500
      ? 'Repeat the request later, as <code>Retry-After</code> says, with the same <code>Idempotency-Key</code>. If it fails again, report the <code>requestId</code>.'
      : entry.status === 429
        ? 'Wait for the seconds in <code>Retry-After</code>, then repeat the request.'
        : 'Change what the sentence above names. The same request again gets the same answer until then.'
  const body = `<h1>${escapeHtml(entry.title)}</h1><p>${code(name)} · HTTP ${entry.status}</p><h2>Cause</h2><p>${prose(entry.detail)}</p>
<h2>What to do</h2><p>${next}</p><p>${isAnywhere ? 'Any operation may answer this.' : `<a href="/docs/errors">All errors</a> names the operations that answer this.`} A refusal carries <code>requestId</code>, and the members that <a href="/docs/errors">errors</a> lists.</p>`
  return withNavigation(guides, { title: entry.title, body })
}
