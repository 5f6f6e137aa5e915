import { devAccount, fundToken } from '@purser/devnet'
import { expect, test } from 'vitest'
import { aWorld, startChain } from '../world.ts'

test('on Tempo a transfer from a wallet is booked as outgoing and its fee as a fee, and the receiver gets one deposit event', async () => {
  const chain = await startChain({ network: 'tempo-moderato' })
  const world = await aWorld({ chains: [chain], boot: { depositPollMsMax: 50 } })
  try {
    const org = await world.organisation()
    const sender = { address: devAccount.address, chain: 'tempo', supportedTokens: ['pathUSD', 'AlphaUSD'] }
    const made = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', sender)
    const receiver = { ...sender, address: `0x${'6b'.repeat(20)}` }
    const till = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', receiver)
    const txHash = await fundToken(chain, 'AlphaUSD', `0x${'6b'.repeat(20)}`, 2_000_000n)
    const rows = async (id: unknown) =>
      (await world.call(org.testKey, 'GET', `/wallet-infra/byo-wallets/${id}/transactions`)).list
    const kinds = async () =>
      (await rows(made.body.id)).map(({ kind, direction, status }) => `${direction} ${kind} ${status}`).sort()
    await expect.poll(kinds, { timeout: 90_000 }).toEqual(['out fee confirmed', 'out transfer confirmed'])
    await expect
      .poll(async () =>
        (await rows(till.body.id)).map(({ kind, status, amount, tokenSymbol }) => [kind, status, amount, tokenSymbol]),
      )
      .toEqual([['transfer', 'confirmed', '2', 'AlphaUSD']])
    const events = (await world.call(org.testKey, 'GET', '/events?type=deposit.success')).list
    expect(events.map(({ payload }) => [Object(payload).walletId, Object(payload).txHash])).toEqual([
      [till.body.id, txHash],
    ])
  } finally {
    await world.stop()
    await chain.stop()
  }
})
