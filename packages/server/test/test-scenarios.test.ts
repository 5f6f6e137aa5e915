/** What docs/testing.md names exists in the code. */

import { readFile } from 'node:fs/promises'
import { parseDuration } from '@purser/protocol'
import { expect, test } from 'vitest'
import { faultsOfDetails } from '../src/features/withdrawals/bank-accounts/rules.ts'
import { operations } from '../src/operations.ts'
import { sandboxFlaggedAddress, sandboxPendingAddress } from '../src/partners/screening/sandbox.ts'
import { allErrors } from '../src/platform/http/refusals.ts'

const page = await readFile(new URL('../../../docs/testing.md', import.meta.url), 'utf8')

test('its addresses are those of the sandbox', () => {
  expect(new Set(page.match(/0x[0-9a-fA-F]{40}\b/g))).toEqual(new Set([sandboxFlaggedAddress, sandboxPendingAddress]))
})

test('its bank details are accepted', () => {
  const [gbp, usd, eur] = ['GBP', 'USD', 'EUR'].map((currency) =>
    [...(page.split(`${currency} \``)[1] ?? '').matchAll(/(?:^|`)([0-9A-Z-]+)`/g)]
      .slice(0, 2)
      .map(([, text]) => text ?? ''),
  )
  expect(faultsOfDetails('GBP', { sortCode: gbp?.[0] ?? '', accountNumber: gbp?.[1] ?? '' })).toEqual([])
  expect(faultsOfDetails('USD', { routingNumber: usd?.[0] ?? '', accountNumber: usd?.[1] ?? '' })).toEqual([])
  expect(faultsOfDetails('EUR', { iban: eur?.[0] ?? '', swiftBic: eur?.[1] ?? '' })).toEqual([])
})

test('its advances are durations', () => {
  const advances = [...page.matchAll(/"(?:advance|ttl)": "([^"]+)"/g)].map(([, text = '']) => text)
  expect(advances.length).toBeGreaterThan(3)
  for (const advance of advances) expect(parseDuration(advance), advance).toEqual(expect.any(Number))
})

test('its operations and problem codes exist', () => {
  const paths = new Set(operations.map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, '{id}')}`))
  const named = [...page.matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`\s]+)`/g)].map(([, text = '']) => text)
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter((name) => !paths.has(name))).toEqual([])
  const codes = Object.keys(allErrors(operations))
  const written = [...page.matchAll(/\b[45]\d\d `([a-z-]+)`/g)].map(([, code = '']) => code)
  expect(written.length).toBeGreaterThan(4)
  expect(written.filter((code) => !codes.includes(code))).toEqual([])
})
