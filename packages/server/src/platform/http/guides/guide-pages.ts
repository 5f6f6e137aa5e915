import type { Operation } from '../../operation.ts'
import { qualityOf } from '../accept.ts'
import type { RawResponse } from '../call.ts'
import { keptPages } from '../encoded.ts'
import type { PageRequest, PublicPage } from '../public-page.ts'
import { escapeHtml, prose } from '../reference/html.ts'
import { errorGuides } from './error-pages.ts'
import { type Guide, groups, linkTarget, readGuides } from './guides.ts'
import { htmlHeaders, page } from './layout.ts'
import { type Rendered, renderMarkdown } from './markdown.ts'
import { createSearch, excerpt, type Search, sectionsOf } from './search.ts'

export interface GuideOptions {
  readonly baseUrl: string
  readonly operations: readonly Operation[]
  /** The tags of the operations; each has its own OpenAPI document. */
  readonly tags: () => readonly { readonly name: string; readonly description: string }[]
  /** The whole API reference, as HTML without scripts. */
  readonly reference: () => string
  /** The response for an address where nothing is. */
  readonly missing: () => RawResponse
}

const markdownHeaders = { 'content-type': 'text/markdown; charset=utf-8' }
const textHeaders = { 'content-type': 'text/plain; charset=utf-8' }
const claim = 'Payment and wallet infrastructure for AI agents: x402 and MPP, managed wallets, vaults, webhooks.'

/**
 * The documentation of the service, made from the pages of the repository: `/`, `/llms.txt`, `/llms-full.txt`, `/robots.txt`, and under
 * `/docs` the guides and a page for each error code as HTML and Markdown, and the reference. Each is rendered when it is first requested.
 */
export function guidePages(options: GuideOptions): PublicPage[] {
  const read = createGuides(options.operations)
  const [html, markdown, text] = [keptPages(htmlHeaders), keptPages(markdownHeaders), keptPages(textHeaders)]
  const guideResponse = (requested: string, request: PageRequest): RawResponse => {
    if (requested === '' || requested.endsWith('/')) return withoutSlash(request.url)
    const guide = read().get(requested.replace(/\.md$/, ''))
    if (guide === undefined) return isBrowser(request) ? missingPage(read()) : options.missing()
    if (requested.endsWith('.md') || prefersMarkdown(request))
      return markdown(guide.name, () => guide.markdown)(request)
    return html(guide.name, () => guidePage(read(), guide))(request)
  }
  const llms = (): string => llmsText(read(), options)
  const searchResponse = createSearchResponse(options.baseUrl, read)
  return [
    {
      path: '/',
      respond: (_, request) =>
        qualityOf(request.headers.accept, 'text/html') > 0
          ? html('/', () => indexPage(read()))(request)
          : markdown('/', llms)(request),
    },
    { path: '/llms.txt', respond: (_, request) => text('/llms.txt', llms)(request) },
    { path: '/llms-full.txt', respond: (_, request) => text('/llms-full.txt', () => fullText(read()))(request) },
    { path: '/robots.txt', respond: (_, request) => text('/robots.txt', () => robots)(request) },
    { path: '/docs', respond: (_, request) => html('/', () => indexPage(read()))(request) },
    { path: '/docs/search', respond: (_, request) => searchResponse(request), cost: searchCost },
    { path: '/docs/reference/plain', respond: (_, request) => html('reference', options.reference)(request) },
    { path: '/problems/:code', respond: ({ code = '' }, request) => guideResponse(`errors/${code}`, request) },
    { path: '/docs/decisions', respond: (_, request) => html('decisions', () => decisionsPage(read()))(request) },
    { path: '/docs/*', respond: ({ '*': name }, request) => guideResponse(name ?? '', request) },
  ]
}

/** Creates the function that returns the guides, which it reads once, and a page for each error code. */
function createGuides(operations: GuideOptions['operations']): () => ReadonlyMap<string, Guide> {
  let guides: ReadonlyMap<string, Guide> | undefined
  return () => {
    guides ??= new Map([...readGuides(), ...errorGuides(operations).map((one) => [one.name, one] as const)])
    return guides
  }
}

/** Creates the function that searches the guides; the first search makes their index. */
function createSearchResponse(baseUrl: string, read: () => ReadonlyMap<string, Guide>) {
  let search: Promise<Search> | undefined
  let beside: string | undefined
  return async ({ url }: PageRequest): Promise<RawResponse> => {
    const headings = (guide: Guide) => renderGuide(read(), guide).headings
    search ??= createSearch(read(), (guide) => sectionsOf(guide, headings(guide)))
    beside ??= navigation(read(), '')
    const query = (new URL(url, baseUrl).searchParams.get('q') ?? '').slice(0, queryCharactersMax).trim()
    return {
      status: 200,
      headers: { ...htmlHeaders, 'cache-control': 'no-store' },
      body: searchPage(beside, query, await search),
    }
  }
}

/** Redirects an address with a slash at the end to the page. Uses the path as sent, since a decoded path could break the header. */
function withoutSlash(url: string): RawResponse {
  const [path = '', ...query] = url.split('?')
  const location = [path.replace(/\/$/, ''), ...query].join('?')
  return { status: 308, headers: { location }, body: '' }
}

const queryCharactersMax = 100
/** A search takes some milliseconds of CPU; every other page is kept. */
const searchCost = 4

const robots = 'User-agent: *\nAllow: /$\nAllow: /docs\nAllow: /llms\nAllow: /openapi\nDisallow: /\n'

/** A browser accepts HTML; an agent that wants Markdown accepts it or plain text, and no HTML. */
function prefersMarkdown({ headers: { accept } }: PageRequest): boolean {
  const isAccepted = (type: string) => qualityOf(accept, type) > 0
  return (isAccepted('text/markdown') || isAccepted('text/plain')) && !isAccepted('text/html')
}

/** A browser names HTML in `Accept`; a program accepts anything or JSON. */
function isBrowser({ headers: { accept = '' } }: PageRequest): boolean {
  return accept.includes('text/html')
}

function missingPage(guides: ReadonlyMap<string, Guide>): RawResponse {
  const body = `<h1>There is no such page</h1><p>Search the guides, or begin at the <a href="/docs">list of all guides</a>.</p>`
  return {
    status: 404,
    headers: { ...htmlHeaders, 'cache-control': 'no-store' },
    body: withNavigation(guides, { title: 'Not found', body }),
  }
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
The \`type\` of a refusal is the address of a page with its causes and what to do; with \`.md\` behind it, that page is Markdown. Every page below is Markdown; without \`.md\` it is HTML.

## API

- [OpenAPI](${baseUrl}/openapi.json): Every operation, event and error, with schemas.
- [Reference](${baseUrl}/docs/reference/plain): The same as one HTML page without scripts. People search and send requests at ${baseUrl}/docs/reference.
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
    const items = guidesIn(guides, names).map((guide) => {
      const here = guide.name === current ? ' aria-current="page"' : ''
      return `<li><a href="/docs/${guide.name}"${here}>${escapeHtml(shortTitle(guide))}</a></li>`
    })
    return `<h2>${escapeHtml(title)}</h2><ul>${items.join('')}</ul>`
  })
  return `<nav class="side" aria-label="Guides">${parts.join('')}</nav>`
}

function shortTitle({ name, title }: Guide): string {
  return name === 'README' ? 'Overview' : title
}

interface Shown {
  readonly title: string
  readonly body: string
  /** The name of the guide that is shown. */
  readonly current?: string
  /** The list of the sections, beside the page. */
  readonly aside?: string | undefined
  readonly query?: string
}

function withNavigation(guides: ReadonlyMap<string, Guide>, { title, body, current = '', aside }: Shown): string {
  return pageBeside(navigation(guides, current), { title, body, aside })
}

/** A page beside a list of all guides. */
function pageBeside(list: string, { title, body, aside, query = '' }: Omit<Shown, 'current'>): string {
  const kind = aside === undefined ? 'guide wide' : 'guide'
  const content = `<main id="content">${body}</main>${aside ?? ''}${list}`
  return page(`${title} · Purser`, `<div class="${kind}">${content}</div>`, { place: 'guides', query })
}

/** The HTML of a guide, with links that lead to the other guides. */
export function renderGuide(guides: ReadonlyMap<string, Guide>, { name, markdown }: Guide): Rendered {
  return renderMarkdown(markdown, (href) => linkTarget(guides, name, href))
}

function guidePage(guides: ReadonlyMap<string, Guide>, guide: Guide): string {
  const rendered = renderGuide(guides, guide)
  const { headings } = rendered
  const isError = guide.name.startsWith(errorsBelow)
  const html = guide.name === 'errors' ? withErrorLinks(guides, rendered.html) : rendered.html
  const sections = headings.filter(({ level }) => level === 2)
  const list = `<ul>${sections.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`).join('')}</ul>`
  const contents =
    sections.length < 4 ? '' : `<details class="contents"><summary>On this page</summary>${list}</details>`
  const kind = groups.find(([, names]) => names.includes(guide.name))?.[0] ?? (isError ? 'Error' : 'Decision')
  const source = `<p class="end"><small><a href="/docs/${guide.name}.md">This page as Markdown</a></small></p>`
  const body = `<p class="kind">${escapeHtml(kind)}</p>${html.replace('</h1>', () => `</h1>${contents}`)}${neighbours(guides, guide)}${source}`
  const aside = `<nav class="onpage" aria-label="On this page">${sections.length === 0 ? '' : `<h2>On this page</h2>${list}`}</nav>`
  return withNavigation(guides, { title: guide.title, body, current: isError ? 'errors' : guide.name, aside })
}

const errorsBelow = 'errors/'

/** Makes each code in the list of all errors a link to its page. */
function withErrorLinks(guides: ReadonlyMap<string, Guide>, html: string): string {
  return html.replaceAll(/<td>(<code>([a-z0-9-]+)<\/code>)<\/td>/g, (cell, shown: string, code: string) =>
    guides.has(`${errorsBelow}${code}`) ? `<td><a href="/docs/${errorsBelow}${code}">${shown}</a></td>` : cell,
  )
}

/** Links to the guides before and after this one. */
function neighbours(guides: ReadonlyMap<string, Guide>, { name }: Guide): string {
  const all = guidesIn(
    guides,
    groups.flatMap(([, names]) => names),
  )
  const place = all.findIndex((one) => one.name === name)
  if (place === -1) return ''
  const [before, after] = [all[place - 1], all[place + 1]]
  const link = (guide: Guide, kind: string, label: string): string =>
    `<a class="${kind}" href="/docs/${guide.name}"><small>${label}</small>${escapeHtml(shortTitle(guide))}</a>`
  const links = [before && link(before, 'previous', 'Previous'), after && link(after, 'next', 'Next')]
  return `<nav class="turn" aria-label="Previous and next guide">${links.filter((one) => one !== undefined).join('')}</nav>`
}

/** The guides that most readers need, on the first page. */
const beginnings: readonly (readonly [title: string, href: string, text: string])[] = [
  [
    'Sell a route',
    '/docs/quick-start',
    'A paid route in Express, Hono, Fastify or Next, an agent that pays it, and a signed event.',
  ],
  ['Give an agent a wallet', '/docs/agent-wallet', 'Payments under caps, with a person who approves the large ones.'],
  [
    'Receive deposits',
    '/docs/receive-deposits',
    'An address for each customer, an event for each deposit, and one wallet at the end.',
  ],
  ['Move an existing server', '/docs/moving', 'An x402 or mppx server with Purser as its facilitator.'],
  ['API reference', '/docs/reference', 'Every operation with its parameters, examples and errors.'],
  ['Run it in production', '/docs/production', 'A rehearsal on your machine, and the list to check before real money.'],
]

function indexPage(guides: ReadonlyMap<string, Guide>): string {
  const card = (title: string, href: string, text: string): string =>
    `<li><a href="${href}"><strong>${escapeHtml(title)}</strong>${text}</a></li>`
  const parts = groups.map(([title, names]) => {
    const items = guidesIn(guides, names).map((guide) =>
      card(shortTitle(guide), `/docs/${guide.name}`, prose(guide.summary)),
    )
    return `<h2>${escapeHtml(title)}</h2><ul class="cards">${items.join('')}</ul>`
  })
  const first = beginnings.map(([title, href, text]) => card(title, href, escapeHtml(text)))
  const body = `<h1>Purser documentation</h1><p class="lead">${escapeHtml(claim)}</p><ul class="cards">${first.join('')}</ul>
<p>For agents: <a href="/llms.txt">/llms.txt</a>, <a href="/llms-full.txt">/llms-full.txt</a> and <a href="/openapi.json">/openapi.json</a>. For people who run an organisation: the <a href="/dashboard">dashboard</a>.</p>${parts.join('')}`
  return withNavigation(guides, { title: 'Documentation', body })
}

function searchPage(beside: string, query: string, search: Search): string {
  const matches = query === '' ? [] : search(query)
  const items = matches.map((match) => {
    const place = match.title === match.page ? '' : `<small>${escapeHtml(match.page)}</small><br>`
    return `<li>${place}<a href="${escapeHtml(match.id)}">${escapeHtml(match.title)}</a><p>${excerpt(match)}</p></li>`
  })
  const none =
    query === ''
      ? 'Type words into the field above.'
      : `Nothing matches. The <a href="/docs/reference">API reference</a> lists every operation, and <a href="/docs/errors">errors</a> every code.`
  const body = `<h1>${query === '' ? 'Search' : `Results for “${escapeHtml(query)}”`}</h1>${items.length === 0 ? `<p>${none}</p>` : `<ol class="found">${items.join('')}</ol>`}`
  return pageBeside(beside, { title: 'Search', body, query })
}

function decisionsPage(guides: ReadonlyMap<string, Guide>): string {
  const decisions = [...guides.values()].filter(({ name }) => name.startsWith('decisions/'))
  const items = decisions
    .toSorted((left, right) => left.name.localeCompare(right.name))
    .map(({ name, title }) => `<li><a href="/docs/${name}">${prose(title)}</a></li>`)
  return withNavigation(guides, { title: 'Decisions', body: `<h1>Decisions</h1><ul>${items.join('')}</ul>` })
}
