import { expect, test } from 'vitest'
import { operations } from '../../../operations.ts'
import { failPlatform } from '../../errors.ts'
import type { RawResponse } from '../call.ts'
import { allErrors } from '../refusals.ts'
import { guidePages, renderGuide } from './guide-pages.ts'
import { groups, readGuides } from './guides.ts'
import { renderMarkdown } from './markdown.ts'
import { createSearch, sectionsOf } from './search.ts'

const errors = allErrors(operations)
const missing: RawResponse = { status: 404, headers: {}, body: '' }
const pages = guidePages({
  baseUrl: 'https://pay.example.com',
  operations,
  tags: () => [{ name: 'vaults', description: 'About vaults.' }],
  reference: () => 'reference',
  missing: () => missing,
})
const guides = readGuides()
const rendered = new Map([...guides].map(([name, guide]) => [name, renderGuide(guides, guide)]))

/** The answer of the page with this path; `headers` as a client sends them. */
async function get(
  path: string,
  params: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<RawResponse> {
  const found = pages.find((one) => one.path === path)
  if (found === undefined) throw new Error(`no page ${path}`)
  return await found.respond(params, {
    method: 'GET',
    url: path,
    headers,
    body: new Uint8Array(),
    address: '127.0.0.1',
  })
}

test('the first page is HTML for a browser and Markdown for an agent', async () => {
  const forPeople = await get('/', {}, { accept: 'text/html,*/*;q=0.8' })
  expect(forPeople.headers['content-type']).toContain('text/html')
  expect(forPeople.headers.vary).toContain('Accept')
  const forAgents = await get('/', {}, { accept: '*/*' })
  expect(forAgents.headers['content-type']).toContain('text/markdown')
  expect(String(forAgents.body)).toContain('https://pay.example.com/openapi.json')
})

test('a media type with the weight 0 is not what the client prefers', async () => {
  const typeAt = async (path: string, accept: string) =>
    (await get(path, { code: 'not-found' }, { accept })).headers['content-type']
  expect(await typeAt('/', 'text/html;q=0, */*')).toContain('text/markdown')
  expect(await typeAt('/problems/:code', 'text/markdown;q=0, */*')).toContain('text/html')
  expect(await typeAt('/problems/:code', 'text/markdown, text/html;q=0.0')).toContain('text/markdown')
})

test('an address without a page is an HTML page for a browser, and a problem for a program', async () => {
  const forPeople = await get('/docs/*', { '*': 'nothing-here' }, { accept: 'text/html,*/*;q=0.8' })
  expect(forPeople.status).toBe(404)
  expect(String(forPeople.body)).toContain('There is no such page')
  expect(await get('/docs/*', { '*': 'nothing-here' }, { accept: '*/*' })).toBe(missing)
})

test('the list of decisions shows code without its backquotes', async () => {
  const list = String((await get('/docs/decisions')).body)
  expect(list).toContain('<code>Prefer: respond-async</code>')
})

test('llms.txt names the OpenAPI document of each tag', async () => {
  const list = String((await get('/llms.txt')).body)
  expect(list).toContain('- [vaults](https://pay.example.com/openapi/vaults.json): About vaults.')
})

test('llms.txt names every guide, and each of its addresses answers Markdown', async () => {
  const list = String((await get('/llms.txt')).body)
  const names = [...list.matchAll(/https:\/\/pay\.example\.com\/docs\/([\w-]+)\.md/g)].map(([, name = '']) => name)
  expect(names.toSorted()).toEqual([...guides.keys()].filter((name) => !name.startsWith('decisions/')).toSorted())
  expect(new Set(groups.flatMap(([, members]) => members))).toEqual(new Set(names))
  for (const name of names) {
    const answer = await get('/docs/*', { '*': `${name}.md` })
    expect([answer.status, answer.body]).toEqual([200, guides.get(name)?.markdown])
  }
  expect(String((await get('/llms-full.txt')).body)).toContain(guides.get('webhooks')?.markdown.trim())
  expect(String((await get('/robots.txt')).body)).toContain('Allow: /docs')
})

test('every error code has a page as HTML and as Markdown; an unknown code and a path out of the guides have none', async () => {
  for (const [code, { title }] of Object.entries(errors)) {
    const { status, body } = await get('/docs/*', { '*': `errors/${code}` })
    expect([status, String(body).includes(`<h1 id=`), String(body).includes(title)], code).toEqual([200, true, true])
    expect((await get('/problems/:code', { code })).body).toBe(body)
    const markdown = await get('/docs/*', { '*': `errors/${code}.md` })
    expect([markdown.headers['content-type'], String(markdown.body)]).toEqual([
      'text/markdown; charset=utf-8',
      expect.stringContaining(`# ${title}`),
    ])
    expect((await get('/problems/:code', { code }, { accept: 'text/markdown' })).body).toBe(markdown.body)
    expect((await get('/problems/:code', { code: `${code}.md` })).body).toBe(markdown.body)
  }
  expect(Object.keys(errors)).toEqual(expect.arrayContaining(Object.keys(failPlatform.table)))
  for (const name of ['../package.json', '../../etc/passwd', 'constructor', 'errors/constructor'])
    expect((await get('/docs/*', { '*': name })).status).toBe(404)
  expect((await get('/problems/:code', { code: 'constructor' })).status).toBe(404)
})

test('the list of all errors leads to the page of each', async () => {
  const { body } = await get('/docs/*', { '*': 'errors' })
  const linked = [...String(body).matchAll(/<td><a href="\/docs\/errors\/([a-z0-9-]+)">/g)].map(([, code]) => code)
  expect([...new Set(linked)].toSorted()).toEqual(Object.keys(errors).toSorted())
})

test('a search finds sections of guides and errors by words that are incomplete or misspelled, and shows the query as text', async () => {
  const found = async (query: string): Promise<string> => {
    const page = pages.find(({ path }) => path === '/docs/search')
    const url = `/docs/search?q=${encodeURIComponent(query)}`
    return String(
      (await page?.respond({}, { method: 'GET', url, headers: {}, body: new Uint8Array(), address: '' }))?.body,
    )
  }
  expect(await found('webhook signature')).toMatch(/href="\/docs\/webhooks#[\w-]+"/)
  expect(await found('webhok signatur')).toMatch(/href="\/docs\/webhooks#[\w-]+"/)
  expect(await found('duplicate-payment')).toContain('href="/docs/errors/duplicate-payment"')
  expect(await found('authorization ends within 6 seconds')).toContain('payment-verification-failed')
  expect(await found('xyzzy')).toContain('Nothing matches.')
  expect(await found('')).toContain('Type words')
  const hostile = await found('"><script>alert(1)</script> (.*)+$ \\')
  expect(hostile.match(/<script/g)).toHaveLength(1)
  expect(hostile).toContain('&quot;&gt;&lt;script&gt;')
  expect((await found('a'.repeat(100_000))).length).toBeLessThan(40_000)
})

test('a search reads each word of a query once, the first eight at most, and keeps its matches', async () => {
  const search = await createSearch(guides, (guide) => sectionsOf(guide, renderGuide(guides, guide).headings))
  const found = search('webhook signature')
  expect(found.length).toBeGreaterThan(0)
  expect(search(' Webhook, signature webhook '.repeat(20))).toBe(found)
  const eight = 'the money of a payment is not settled'
  expect(search(`${eight} xyzzy plugh`)).toBe(search(eight))
})

test('other work is done while the search reads the guides', async () => {
  let turns = 0
  let isRead = false
  const count = (): void => {
    turns += 1
    if (!isRead) setImmediate(count)
  }
  setImmediate(count)
  await createSearch(guides, (guide) => sectionsOf(guide, renderGuide(guides, guide).headings))
  isRead = true
  expect(turns).toBeGreaterThan(50)
})

test('a search shows what has the words in its title before what has them in its text', async () => {
  const page = pages.find(({ path }) => path === '/docs/search')
  const first = async (query: string): Promise<string | undefined> => {
    const request = { method: 'GET', url: `/docs/search?q=${query}`, headers: {}, body: new Uint8Array(), address: '' }
    return /<a href="([^"]+)">/.exec(
      /<ol class="found">.*/s.exec(String((await page?.respond({}, request))?.body))?.[0] ?? '',
    )?.[1]
  }
  expect(await first('webhooks')).toBe('/docs/webhooks')
  expect(await first('spend+policies')).toBe('/docs/policies')
  expect(await first('sessions')).toBe('/docs/sessions')
  expect(await first('idempotency')).toMatch(/^\/docs\/(?:idempotency|errors\/idempotency)/)
  expect(await first('refund')).toBe('/docs/refunds')
  expect(await first('createPaidTool')).toBe('/docs/sdk#tools-of-an-mcp-server')
  expect(await first('paidTool')).toBe('/docs/sdk#tools-of-an-mcp-server')
  expect(await first('insufficient-balance')).toBe('/docs/errors/insufficient-balance')
})

test('code is shown with its tokens, and what it says is text', () => {
  const { html } = renderMarkdown('```ts\nconst a = "<b>"\n```\n\n```unknown\n<b>\n```', (href) => href)
  expect(html).toContain('<span class="hljs-keyword">const</span>')
  expect(html).not.toContain('<b>')
})

test('a page that the client has is 304 without a body, for each encoding by itself', async () => {
  const plain = await get('/docs/*', { '*': 'x402' })
  const packed = await get('/docs/*', { '*': 'x402' }, { 'accept-encoding': 'gzip, br' })
  expect(packed.headers['content-encoding']).toBe('br')
  expect(Buffer.from(Object(packed.body)).length * 2).toBeLessThan(String(plain.body).length)
  const again = { 'if-none-match': `"other", W/${plain.headers.etag}` }
  expect(await get('/docs/*', { '*': 'x402' }, again)).toMatchObject({ status: 304, body: '' })
  expect((await get('/docs/*', { '*': 'x402' }, { ...again, 'accept-encoding': 'br' })).status).toBe(200)
  expect(plain.headers['content-security-policy']).toContain("default-src 'none'")
})

test('no page shows Markdown that was not rendered, or opens an element that it does not close', () => {
  for (const [name, { html }] of rendered) {
    const text = html.replaceAll(/<code>[\s\S]*?<\/code>/g, '')
    expect(text, name).not.toMatch(/```|\]\(|\*\*|^#+ |^\||^- /m)
    const open: string[] = []
    for (const [, slash, tag = ''] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*>/g))
      if (slash === '') open.push(tag)
      else expect(open.pop(), name).toBe(tag)
    expect(open, name).toEqual([])
  }
})

test('every link of a guide leads to a page and to a heading that exist', () => {
  const dead: string[] = []
  for (const [name, { html }] of rendered)
    for (const [, href = ''] of html.matchAll(/href="([^"]+)"/g)) {
      if (/^https?:/.test(href)) continue
      const [file = '', anchor] = href.split('#')
      const target = file === '' ? name : file.replace(/^\/docs\//, '')
      const headings = rendered.get(target)?.headings
      const isPage = headings !== undefined || href === '/docs/decisions'
      if (!isPage || (anchor !== undefined && !headings?.some(({ id }) => id === anchor))) dead.push(`${name}: ${href}`)
    }
  expect(dead).toEqual([])
})

test('HTML, scripts and quotes in Markdown are text', () => {
  const { html } = renderMarkdown(
    '# <b>`<i>`\n\n<script>x</script> [a"b](https://x/"onclick=1) `</code>`',
    (href) => href,
  )
  expect(html).not.toMatch(/<script|<b>|<i>|"onclick/)
  expect(html).toContain('&lt;/code&gt;')
})

test('lists keep their lines, tables their bars, and two equal headings have two anchors', () => {
  const { html, headings } = renderMarkdown(
    '## A b\n\n- one\n  two\n- three\n\n| x | y |\n|---|---|\n| a \\| b | `c` |\n\n## A b',
    () => undefined,
  )
  expect(headings.map(({ id }) => id)).toEqual(['a-b', 'a-b-1'])
  expect(html).toContain('<li>one two</li>\n<li>three</li>')
  expect(html).toContain('<td>a | b</td><td><code>c</code></td>')
})
