import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { operations } from '../../../operations.ts'
import { errorMeanings } from '../error-catalogue.ts'
import { errorsOf } from '../refusals.ts'
import { errorGuides } from './error-pages.ts'
import { renderGuide } from './guide-pages.ts'
import { readGuides } from './guides.ts'

const meanings = errorMeanings(operations)
const each = meanings.map((meaning) => [`${meaning.code} (${meaning.entry.status})`, meaning] as const)
const pages = errorGuides(operations)
const root = path.join(import.meta.dirname, '../../../../../..')

test.each(each)('%s has causes and a fix of its own, in sentences', (_, { entry: { causes, fix, detail } }) => {
  expect(causes.length).toBeGreaterThan(0)
  for (const sentence of [...causes, fix]) {
    expect(sentence).toMatch(/^["`A-Z0-9].*[.)]$/s)
    expect(sentence).not.toMatch(
      /correct what the cause names|see the detail|contact support|try again later|something went wrong/i,
    )
  }
  expect(causes).not.toContain(detail)
  expect(fix.length).toBeGreaterThan(30)
})

test('no two errors have the same fix or the same cause', () => {
  const seen = new Map<string, string>()
  for (const { code, entry } of meanings)
    for (const sentence of [...entry.causes, entry.fix]) {
      expect(seen.get(sentence), sentence).toBeUndefined()
      seen.set(sentence, code)
    }
})

test('every operation that a cause or fix names exists, with that method', () => {
  const withoutNames = (text: string): string => text.replaceAll(/\{[^}]*\}/g, '{}')
  const known = new Set(operations.map((one) => `${one.method} ${withoutNames(one.path)}`))
  const withoutKey = 'GET /readyz'
  const missing = texts().flatMap((text) =>
    [...text.matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^`? ]*)[^`]*`/g)]
      .map(([, method, at = '']) => `${method} ${withoutNames(at)}`)
      .filter((named) => !known.has(named) && named !== withoutKey),
  )
  expect(missing).toEqual([])
})

test('every operator command, setting and guide that a cause or fix names exists', () => {
  const operations = readFileSync(path.join(root, 'docs/operations.md'), 'utf8')
  const guides = ['organisations-and-keys', 'operations', 'screening', 'policies', 'signing-in'].map((name) =>
    readFileSync(path.join(root, `docs/${name}.md`), 'utf8'),
  )
  for (const text of texts()) {
    for (const [, command = ''] of text.matchAll(/purser admin ([a-z-]+)/g))
      expect(guides.join(), command).toContain(command)
    for (const [, setting = ''] of text.matchAll(/`([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:=\w+)?`/g))
      expect(operations, setting).toContain(setting)
    for (const [, guide = ''] of text.matchAll(/\]\(\/docs\/([\w-]+)\)/g))
      expect(existsSync(path.join(root, `docs/${guide}.md`)), guide).toBe(true)
    expect(text).not.toMatch(/docs\/[\w-]+\.md/)
  }
})

test('the page of a code lists exactly the operations whose tables have it', () => {
  for (const { name, markdown } of pages) {
    const code = name.slice('errors/'.length)
    const listed = [...markdown.matchAll(/^- \[`([\w.]+)`\]/gm)].map(([, id]) => id)
    const actual = operations.filter((one) => Object.hasOwn(errorsOf(one), code)).map(({ id }) => id)
    const isGroup = markdown.includes('may answer with it.')
    if (!isGroup) expect(listed.toSorted(), code).toEqual(actual.toSorted())
    else expect(actual.length, code).toBeGreaterThan(40)
  }
})

test('a code with several meanings says from which operations each comes', () => {
  const page = pages.find(({ name }) => name === 'errors/session-not-found')?.markdown
  expect(page?.match(/^## .+$/gm)).toEqual([
    '## HTTP 402 from sessions',
    '## HTTP 404 from account',
    '## HTTP 404 from sessions',
  ])
  for (const { name, markdown } of pages) {
    const headings = markdown.match(/^## .+$/gm) ?? []
    expect(new Set(headings).size, name).toBe(headings.length)
  }
})

test('a page renders without Markdown that is left over, and shows its cause, fix and operations', () => {
  const guides = readGuides()
  for (const page of pages) {
    const { html } = renderGuide(guides, page)
    expect(html.replaceAll(/<code>[\s\S]*?<\/code>/g, ''), page.name).not.toMatch(/```|\]\(|\*\*|^#+ |^- |`/m)
  }
  const { html } = renderGuide(
    guides,
    pages.find(({ name }) => name === 'errors/duplicate-payment') ?? (pages[0] as never),
  )
  expect(html).toContain('<h2 id="why">')
  expect(html).toContain('<h2 id="what-to-do">')
  expect(html).toContain('href="/docs/reference/plain#payments.verify"')
})

function texts(): string[] {
  return meanings.flatMap(({ entry }) => [...entry.causes, entry.fix])
}
