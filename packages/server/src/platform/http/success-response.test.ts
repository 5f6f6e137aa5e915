import { expect, test } from 'vitest'
import { nextUrl } from './success-response.ts'

test('the address of the next page keeps all filters, also one with a question mark', () => {
  const requested = '/payments/logs?route=/forecast?city=Oslo&limit=2&from=2026-11-01'
  const next = new URL(nextUrl(requested, 'abc'), 'http://localhost')
  expect(Object.fromEntries(next.searchParams)).toEqual({
    route: '/forecast?city=Oslo',
    limit: '2',
    from: '2026-11-01',
    cursor: 'abc',
  })
  expect(nextUrl('/vaults', 'abc')).toBe('/vaults?cursor=abc')
  expect(nextUrl('/vaults?cursor=old&limit=1', 'new')).toBe('/vaults?cursor=new&limit=1')
})
