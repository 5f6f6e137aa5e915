import { expect, test } from 'vitest'
import { parseRedirect, parseUrl } from './parse-url.ts'

/** Distinct characters, which a host name encodes in Punycode. */
const cjk = (count: number) => String.fromCodePoint(...Array.from({ length: count }, (_, at) => 0x4e00 + at))

test.each([
  'https://',
  'https:',
  'https:/',
  '\thttps:\\\\',
  'ht\ntps://',
  ' \x01http://user:password@',
  'file://',
  'ws://',
  'https://a.',
])('a long host after %j is not parsed', (before) => {
  const texts = [cjk(2_000), encodeURIComponent(cjk(200)), cjk(5_400)].map((host) => `${before}${host}/path`)
  const { user: start } = process.cpuUsage()
  for (let time = 0; time < 20; time += 1) for (const text of texts) expect(parseUrl(text)).toBeUndefined()
  expect(process.cpuUsage().user - start).toBeLessThan(60_000)
})

test.each([
  ['https://api.example.com/weather?city=Paris#now', 'https://api.example.com/weather?city=Paris#now'],
  ['http://日本.example:8080/', 'http://xn--wgv71a.example:8080/'],
  [`https://a.example/${cjk(2_000)}`, `https://a.example/${encodeURIComponent(cjk(2_000))}`],
  [`https://${'a'.repeat(63)}.example/`, `https://${'a'.repeat(63)}.example/`],
])('%s is parsed', (text, href) => {
  expect(parseUrl(text)?.href).toBe(href)
})

test.each(['', 'weather', '/weather', 'https://', `https://a.example/${'a'.repeat(2_048)}`])('%j is no URL', (text) => {
  expect(parseUrl(text)).toBeUndefined()
})

const from = new URL('https://a.example/list?day=1')

test.each(['//', '\\\\', '/\t/', 'https:', 'https://'])(
  'a redirect to a long host after %j is not parsed',
  (before) => {
    const { user: start } = process.cpuUsage()
    for (const host of [cjk(2_000), cjk(5_400)]) expect(parseRedirect(`${before}${host}/path`, from)).toBeUndefined()
    expect(process.cpuUsage().user - start).toBeLessThan(20_000)
  },
)

test.each([
  ['/new', 'https://a.example/new'],
  ['//b.example/list', 'https://b.example/list'],
  ['https://b.example/list', 'https://b.example/list'],
  [`/${'t'.repeat(4_000)}?signed`, `https://a.example/${'t'.repeat(4_000)}?signed`],
])('a redirect to %s is followed', (location, href) => {
  expect(parseRedirect(location, from)?.href).toBe(href)
})
