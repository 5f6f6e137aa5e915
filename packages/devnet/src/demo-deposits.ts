import { isAddress } from '@purser/protocol'
import { type Cast, inWords, type SellerWallet } from './demo-cast.ts'
import type { Listening } from './demo-listen.ts'
import { fundToken } from './faucet.ts'
import { expectTrue } from './narrator.ts'

const rawDeposit = 60_000_000n

/**
 * Deposits arrive unannounced. The provider receives an event for each kind of wallet, with the transaction of the
 * deposit.
 */
export async function checkDepositEvents({ purser, onBase }: Cast, listening: Listening) {
  const master = await purser.wallets.master.create({ name: 'Treasury', chain: 'base', supportedTokens: ['USDC'] })
  const child = await purser.wallets.children.create(master.id, { name: 'Customer 7' })
  const own = { id: onBase.walletId, address: onBase.receiver }
  const began = performance.now()
  for (const { id, address } of [own, master, child]) {
    expectTrue(isAddress(address), `${id} has no address`)
    const txHash = await fundToken(onBase.chain, 'USDC', address, rawDeposit)
    const isIt = ({ payload }: { readonly payload: object }) => 'txHash' in payload && payload.txHash === txHash
    const { event } = await listening.until((one) => one.event.type === 'deposit.success' && isIt(one.event))
    const { walletId, rawAmount } = { walletId: undefined, rawAmount: undefined, ...event.payload }
    expectTrue(
      walletId === id && rawAmount === String(rawDeposit),
      `the event about ${txHash} does not match the deposit`,
    )
  }
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)
  expectTrue(isAddress(master.address), `${master.id} has no address`)
  const value: SellerWallet = { ...onBase, walletId: master.id, receiver: master.address }
  return {
    value,
    summary: `deposit.success for ${own.id}, ${master.id} and ${child.id}: ${inWords(onBase, rawDeposit)} each, ${seconds} s in all`,
  }
}
