import { type NetworkName, networks } from '@purser/protocol'
import { expect, test } from 'vitest'
import { endOn } from '../../../test/routes.ts'
import { chooseRoute } from './choose.ts'

test.each([
  ['base', 'USDC', 'base', 'USDC', 'direct', undefined],
  ['tempo', 'pathUSD', 'tempo', 'pathUSD', 'direct', undefined],
  ['ethereum', 'USDC', 'ethereum', 'USDT', 'partner-swap', 'lifi'],
  ['base', 'native', 'base', 'USDC', 'partner-swap', 'lifi'],
  ['tempo', 'pathUSD', 'tempo', 'USDC_E', 'partner-swap', 'relay'],
  ['base', 'USDC', 'ethereum', 'USDC', 'partner-bridge', 'cctp'],
  ['polygon', 'USDC', 'arbitrum', 'USDC', 'partner-bridge', 'cctp'],
  ['base', 'USDC', 'ethereum', 'USDT', 'partner-bridge', 'lifi'],
  ['ethereum', 'USDT', 'optimism', 'USDT', 'partner-bridge', 'lifi'],
  ['base', 'USDC', 'tempo', 'USDC_E', 'partner-bridge', 'relay'],
  ['tempo', 'USDC_E', 'base', 'USDC', 'partner-bridge', 'relay'],
] as const)('%s %s to %s %s goes %s by %s', (fromName, fromToken, toName, toToken, route, partner) => {
  const ends = { from: endOn(fromName, fromToken), to: endOn(toName, toToken) }
  const choice = chooseRoute(ends, 'live')
  expect([choice.route, 'partner' in choice ? choice.partner : undefined]).toEqual([route, partner])
  expect(choice.why).toMatch(/^\S.* .*\.$/)
  expect(choice.why).toContain(fromName)
})

test('a test key never uses a real partner', () => {
  const names: NetworkName[] = networks.filter(({ isTestnet }) => isTestnet).map(({ name }) => name)
  for (const fromName of names)
    for (const toName of names) {
      const [from, to] = [fromName, toName].map((name) => endOn(name, name.startsWith('tempo') ? 'pathUSD' : 'USDC'))
      if (from === undefined || to === undefined) throw new Error('no ends')
      const choice = chooseRoute({ from, to }, 'test')
      expect('partner' in choice ? choice.partner : 'nobody').toBe(fromName === toName ? 'nobody' : 'sandbox')
    }
})
