import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { routePatternOf } from './route-pattern.ts'

describe('one route has one pattern, however its address is written', () => {
  test.each([
    ['/', '/'],
    ['', '/'],
    ['users/7', '/users/{id}'],
    ['/users/123', '/users/{id}'],
    ['/users/456/', '/users/{id}'],
    ['//users///456', '/users/{id}'],
    ['/users/./456', '/users/{id}'],
    ['/users/456?verbose=1#top', '/users/{id}'],
    ['/users/:id', '/users/{id}'],
    ['/users/:userId(\\d+)', '/users/{id}'],
    ['/users/:id?', '/users/{id}'],
    ['/users/:id?/posts', '/users/{id}/posts'],
    ['/users{/:id}', '/users/{id}'],
    ['/users/[id]', '/users/{id}'],
    ['/users/[[...rest]]', '/users/{id}'],
    ['/users/{userId}', '/users/{id}'],
    ['/users/*', '/users/{id}'],
    ['/users/*rest', '/users/{id}'],
    ['/users/6f9619ff-8b86-d011-b42d-00c04fc964ff', '/users/{id}'],
    ['/users/6F9619FF-8B86-D011-B42D-00C04FC964FF', '/users/{id}'],
    ['/users/0123456789abcdef', '/users/{id}'],
    ['/users/0x036CbD53842c5426634e7929541eC2318f3dCF7e', '/users/{id}'],
    ['/users/user_01h455vb4pex5vsknk084sn02q', '/users/{id}'],
    ['/users/01h455vb4pex5vsknk084sn02q', '/users/{id}'],
    ['/users/01H455VB4PEX5VSKNK084SN02Q', '/users/{id}'],
    ['/users/V1StGXR8_Z5jdHi6B-myTw', '/users/{id}'],
    ['/a/1/b/2', '/a/{id}/b/{id}'],
  ])('the path %s has the pattern %s', (path, pattern) => {
    expect(routePatternOf(path)).toBe(pattern)
  })
})

describe('the name of a route is no identifier', () => {
  test.each([
    '/v1/weather',
    '/api/v2.1/Weather',
    '/current-weather-conditions',
    '/historical-weather-2024-forecast',
    '/getHistoricalWeatherForecast',
    '/very_long_name_of_a_route_v2',
    '/models/gemini:generate',
    '/deadbeef/cafe',
    '/files/report.json',
    '/V1StGXR8_Z5jdHi6B-myT',
    '/städte/%C3%BC',
    '/:',
  ])('%s stays as it is', (path) => {
    expect(routePatternOf(path)).toBe(path)
  })
})

const piece = fc.oneof(
  fc.constantFrom('/', '//', '.', '..', '{', '}', '{/', '[', ']', ':', ':id?', '*', '?', '#', '{id}', '7', 'a'),
  fc.uuid(),
  fc.string(),
)
const anyPath = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))

test('the pattern of a pattern is itself, whatever the text', () => {
  fc.assert(
    fc.property(anyPath, (path) => {
      const pattern = routePatternOf(path)
      expect(routePatternOf(pattern)).toBe(pattern)
    }),
    { numRuns: 5_000 },
  )
})

test('a pattern begins with one slash and has no query, no empty segment and no closing slash', () => {
  fc.assert(
    fc.property(anyPath, (path) => {
      expect(routePatternOf(path)).toMatch(/^\/$|^(?:\/[^/?#]+)+$/)
    }),
    { numRuns: 5_000 },
  )
})

/** Chance may also write `getHistoricalWeatherForecast`; a digit beside a capital, or two capitals in a row, no route's name has. */
const isNoName = (text: string) => (/\d/.test(text) && /[A-Z]/.test(text)) || /.[A-Z]{2}/.test(text)
const identifier = fc.oneof(
  fc.nat().map(String),
  fc.uuid(),
  fc.uint8Array({ minLength: 8, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex')),
  fc
    .uint8Array({ minLength: 16, maxLength: 32 })
    .map((bytes) => Buffer.from(bytes).toString('base64url'))
    .filter(isNoName),
)

test('two calls of one route that differ in their identifiers have one pattern', () => {
  fc.assert(
    fc.property(identifier, identifier, fc.constantFrom('', '/', '?q=1'), (one, other, end) => {
      const ofOne = routePatternOf(`/users/${one}/posts${end}`)
      expect(ofOne).toBe('/users/{id}/posts')
      expect(routePatternOf(`/users/${other}/posts`)).toBe(ofOne)
    }),
    { numRuns: 2_000 },
  )
})

test('the longest path that a registry takes costs no time, however it was made', () => {
  const hostile = [':a?', ':a(', '{', '[', 'aA', 'a-', '1-', '/', '?', 'a1']
  const before = process.threadCpuUsage()
  for (const unit of hostile) routePatternOf(`/${unit.repeat(2_048)}!`)
  expect(process.threadCpuUsage(before).user / 1_000).toBeLessThan(1_000)
})

test('the time grows with the length of the text only', () => {
  const { user: start } = process.cpuUsage()
  expect(routePatternOf(`/${'{'.repeat(100_000)}`)).toHaveLength(100_001)
  expect(process.cpuUsage().user - start).toBeLessThan(100_000)
})
