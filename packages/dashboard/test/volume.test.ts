import type { PaymentStatistics } from '@purser/sdk'
import { expect, test } from 'vitest'
import { figuresOf } from '../src/pages/home/figures.ts'
import { byProtocol, byRoute, tokensOf } from '../src/pages/home/volume.ts'

const [first, second] = ['2026-11-28T10:00:00.000Z', '2026-11-28T11:00:00.000Z']
const row = { at: first, protocol: 'x402', token: 'USDC', status: 'settled', payments: 1, amount: '0.1' } as const

function statisticsOf(intervals: PaymentStatistics['intervals']): PaymentStatistics {
  return {
    from: first,
    to: '2026-11-28T12:00:00.000Z',
    interval: 'hour',
    countedFrom: first,
    intervals,
    settlement: { payments: 0, p50Ms: null, p95Ms: null, intervals: [] },
    failures: [],
    challenges: 20,
    refused: 2,
    gas: [],
    gasUsdPerDayMax: '50',
  }
}

const all = statisticsOf([
  row,
  { ...row, amount: '0.200000000000000001' },
  { ...row, protocol: 'mpp', token: 'PathUSD', payments: 3, amount: '9' },
  { ...row, at: second, status: 'settlement_failed', payments: 4, amount: '100' },
])

test('volume is the settled amount of one token, exact to the last digit, and nothing of another token', () => {
  const { series, points } = byProtocol(all, { token: 'USDC' })
  expect(series.map(({ name }) => name)).toEqual(['x402', 'MPP'])
  expect(points.map(({ words }) => words)).toEqual([
    ['0.300000000000000001 USDC', '0 USDC'],
    ['0 USDC', '0 USDC'],
  ])
  expect(tokensOf(all)).toEqual(['PathUSD', 'USDC'])
})

test('payments are counted whatever their status, also in intervals without any', () => {
  expect(byProtocol(all, 'payments').points.map(({ values }) => values)).toEqual([
    [2, 3],
    [4, 0],
  ])
})

test('what routes of their own leave of the total is that of the others, and never below zero', () => {
  const routes = [
    { name: 'a', statistics: statisticsOf([row]) },
    { name: 'b', statistics: statisticsOf([{ ...row, at: second, amount: '5' }]) },
  ]
  const { series, points } = byRoute(all, { token: 'USDC' }, routes)
  expect(series.map(({ name }) => name)).toEqual(['a', 'b', 'Others'])
  expect(points.map(({ words }) => words)).toEqual([
    ['0.10 USDC', '0 USDC', '0.200000000000000001 USDC'],
    ['0 USDC', '5 USDC', '0 USDC'],
  ])
})

test('the steps from challenge to settlement count what was issued, presented, verified and settled', () => {
  const { issued, paid, payments, settled, failed, revenue } = figuresOf(all)
  expect({ issued, paid, payments, settled, failed }).toEqual({
    issued: 20,
    paid: 11,
    payments: 9,
    settled: 5,
    failed: 4,
  })
  expect(revenue).toEqual([
    { token: 'USDC', amount: '0.300000000000000001' },
    { token: 'PathUSD', amount: '9' },
  ])
})
