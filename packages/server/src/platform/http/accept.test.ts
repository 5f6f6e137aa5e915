import { expect, test } from 'vitest'
import { cookieValue } from '../../features/people/cookie.ts'
import { namesTag, qualityOf } from './accept.ts'
import { prefersCsv } from './csv.ts'

test.each([
  ['commas', ','.repeat(15_500)],
  ['semicolons', ';'.repeat(15_500)],
  ['equals signs', '='.repeat(15_500)],
  ['names of the cookie', 'purser.session_token'.repeat(750)],
])('a header of %s takes no longer than any other', (_, header) => {
  const { user: start } = process.cpuUsage()
  for (let time = 0; time < 100; time += 1) {
    expect(qualityOf(header, 'br')).toBe(0)
    expect(prefersCsv(header)).toBe(false)
    expect(namesTag(header, '"tag"')).toBe(false)
    expect(cookieValue(header, 'purser.session_token')).toBeUndefined()
  }
  expect(process.cpuUsage().user - start).toBeLessThan(100_000)
})

test('values and cookies are found with others around them', () => {
  expect(qualityOf('gzip;q=0.5, br;q=1', 'br')).toBe(1)
  expect([namesTag('"a", W/"b"', '"b"'), namesTag('*', '"c"'), namesTag('"a"', '"c"')]).toEqual([true, true, false])
  const cookies = 'a=1; x.session_token=no; session_token=a%3Db=c ;b=2'
  expect(cookieValue(cookies, 'session_token')).toBe('a=b=c')
  expect([cookieValue(cookies, 'b'), cookieValue(cookies, 'c'), cookieValue('a=%', 'a')]).toEqual([
    '2',
    undefined,
    undefined,
  ])
})
