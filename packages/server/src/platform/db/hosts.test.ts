import { expect, test } from 'vitest'
import { parseAddress } from './hosts.ts'

test.each([
  'postgres://purser:p%40ss@db.internal:5432/purser?sslmode=verify-full',
  'postgresql://purser@/purser?host=%2Ftmp%2Fsocket&port=5432',
  'postgres://purser@[::1]:5432/purser',
])('an address with one host stays as it is, and any server will do: %s', (url) => {
  expect(parseAddress(url)).toEqual({ urls: [url], need: 'any' })
})

test('several hosts are tried in order, and one that takes writes is needed', () => {
  expect(parseAddress('postgres://u:p%2Cw@db-1:5433,db-2,[::1]:5435/purser?sslmode=require')).toEqual({
    urls: [
      'postgres://u:p%2Cw@db-1:5433/purser?sslmode=require',
      'postgres://u:p%2Cw@db-2/purser?sslmode=require',
      'postgres://u:p%2Cw@[::1]:5435/purser?sslmode=require',
    ],
    need: 'read-write',
  })
  expect(parseAddress('postgres://u@/purser?host=%2Fa,%2Fb&port=1,2')).toEqual({
    urls: ['postgres://u@/purser?host=%2Fa&port=1', 'postgres://u@/purser?host=%2Fb&port=2'],
    need: 'read-write',
  })
  expect(parseAddress('postgres://u@/purser?host=%2Fa,%2Fb&port=1')).toMatchObject({
    urls: ['postgres://u@/purser?host=%2Fa&port=1', 'postgres://u@/purser?host=%2Fb&port=1'],
  })
})

test('target_session_attrs decides what is needed and is not sent to a server', () => {
  const one = 'postgres://u@db/purser'
  expect(parseAddress(`${one}?target_session_attrs=read-write`)).toEqual({ urls: [one], need: 'read-write' })
  expect(parseAddress(`${one}?target_session_attrs=primary&sslmode=require`)).toEqual({
    urls: [`${one}?sslmode=require`],
    need: 'read-write',
  })
  expect(parseAddress('postgres://u@a,b/purser?target_session_attrs=any')).toMatchObject({ need: 'any' })
})

test.each([
  ['mysql://u@db/purser', 'begin with postgres'],
  ['postgres://u@db:5432x,other/purser', 'each host'],
  ['postgres://u@a,,b/purser', 'each host'],
  ['postgres://u@/purser?host=%2Fa&port=1,2', 'more ports'],
  ['postgres://u@db/purser?target_session_attrs=standby', 'target_session_attrs'],
])('the database URL %s is rejected with "%s"', (url, fault) => {
  expect(parseAddress(url)).toEqual({ fault: expect.stringContaining(fault) })
})
