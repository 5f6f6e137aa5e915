import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { makeOpenApi, operations } from '../src/operations.ts'
import { type ErrorEntry, failPlatform } from '../src/platform/errors.ts'
import { htmlHeaders } from '../src/platform/http/guides/layout.ts'
import { apiDocument, operationsOf } from '../src/platform/http/reference/document.ts'
import { bodyOf, referencePage } from '../src/platform/http/reference/reference.ts'
import { allErrors, errorsOf } from '../src/platform/http/refusals.ts'
import { memberOf } from './declared.ts'

const openApi = makeOpenApi()
const html = referencePage(openApi, 'https://pay.example.com')
const described = operationsOf(apiDocument(openApi))
const each = operations.map((operation) => [operation.id, operation] as const)

/** What a reader sees of one operation, without its markup. */
function readOf(operationId: string): string {
  const from = html.indexOf(`<section aria-labelledby="${operationId}">`)
  return textOf(html.slice(from, html.indexOf('</section>', from)))
}

function textOf(markup: string): string {
  const text = markup
    .replaceAll(/<\/?(?:a|code)\b[^>]*>/g, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
  return text.replaceAll('&#39;', "'").replaceAll('&amp;', '&').replaceAll(/\s+/g, ' ')
}

test.each(each)(
  'the page shows every field of the request and response of %s, and every error with its detail',
  (id, operation) => {
    const read = readOf(id)
    expect(read).toContain(`${operation.method} ${operation.path}`)
    for (const schema of [operation.params, operation.query, operation.input])
      for (const name of fieldsOf(schema)) expect(read).toContain(` ${name} `)
    if (operation.streamsOutput === undefined)
      for (const name of fieldsOf(operation.output)) expect(read).toContain(` ${name} `)
    for (const code of Object.keys(errorsOf(operation))) expect(read).toContain(code)
    for (const [code, entry] of Object.entries(operation.errors ?? {}))
      if (!Object.hasOwn(failPlatform.table, code)) expect(read).toContain(rowOf(entry))
  },
)

test('the errors of every operation are listed once, with their details', () => {
  const read = textOf(html.slice(html.indexOf('<section aria-labelledby="all-errors">')))
  const everywhere = Object.entries(allErrors(operations)).filter(([code]) => Object.hasOwn(failPlatform.table, code))
  for (const [, entry] of everywhere.filter(([code]) => code !== 'address-format-invalid'))
    expect(read).toContain(rowOf(entry))
})

function rowOf({ status, title, detail }: ErrorEntry): string {
  return `${status} ${title} ${detail.replaceAll('`', '')}`
}

function fieldsOf(schema: unknown): string[] {
  return Object.keys(Object(memberOf(schema, 'shape')))
}

test.each(each.filter(([, { input }]) => input !== undefined))(
  'the example request of %s is one that the operation accepts',
  (id, { input }) => {
    const body = described.find(({ operationId }) => operationId === id)?.requestBody?.content['application/json']
    const parsed = input?.safeParse(body && bodyOf(body))
    expect(parsed?.error?.issues ?? []).toEqual([])
  },
)

test('the page shows the recorded request and response of an operation', () => {
  const read = readOf('wallets.byo.create')
  expect(read).toContain('"name":"Forecast API"}\'')
  expect(read).toContain(
    '"id": "byw_01h455vb4pex5vsknk084sn02q", "address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"',
  )
})

test('every link within the page has a target, no id occurs twice, and each error has its row', () => {
  const names = [...html.matchAll(/ id="([^"]+)"/g)].map(([, name]) => name)
  expect(names.length).toBe(new Set(names).size)
  const links = [...html.matchAll(/href="#([^"]+)"/g)].map(([, name]) => name)
  expect(links.length).toBeGreaterThan(operations.length)
  expect(links.filter((name) => !names.includes(name))).toEqual([])
  const codes = Object.keys(allErrors(operations))
  expect(codes.filter((code) => !html.includes(`<a href="/problems/${code}">`))).toEqual([])
})

test('every element of the page is closed, in order, so that nothing is nested by mistake', () => {
  const open: string[] = []
  for (const [, slash, name = ''] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*?(?<!\/)>/g)) {
    if (slash === '') {
      if (!['meta', 'input'].includes(name)) open.push(name)
    } else expect(open.pop()).toBe(name)
  }
  expect(open).toEqual([])
})

test('the page requests no other host, and has one style and one script, which its own policy allows', () => {
  expect(html).not.toMatch(/<link|<img|<iframe| on[a-z]+=|url\(|@import| style=/)
  const [script = '', ...others] = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, text = '']) => text)
  expect(others).toEqual([])
  expect(htmlHeaders['content-security-policy']).toContain(`script-src 'sha256-${hash('sha256', script, 'base64')}'`)
  const style = /<style>([\s\S]*?)<\/style>/.exec(html)?.[1] ?? ''
  const digest = hash('sha256', style, 'base64')
  expect(htmlHeaders['content-security-policy']).toContain(`default-src 'none'; style-src 'sha256-${digest}'`)
  expect(style).toContain('prefers-color-scheme:dark')
  expect(style).toContain(':focus-visible')
})

test('what a schema says cannot become markup', () => {
  const spoilt = JSON.parse(JSON.stringify(openApi).replaceAll('Verify a payment credential', '<script>`x`</script>'))
  const page = referencePage(spoilt, 'https://x"><b>')
  expect(page.match(/<script/g)).toHaveLength(1)
  expect(page).not.toContain('<b>')
})
