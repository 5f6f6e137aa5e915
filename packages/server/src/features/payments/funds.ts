import type { Address } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import { networkOf } from './give-back.ts'
import { spentAmong } from './nonce-state.ts'
import type { Funds } from './record.ts'
import type { NewPayment } from './store.ts'
import { listOpenOf } from './void-store.ts'

const openMax = 500

/**
 * What a payer can pay with, read anew where it seemed too little: a payment that is in a block and not recorded as settled yet has left the
 * balance already and must not be counted twice. The balance is read first: what moves between the two is then left out.
 */
export async function readFunds({ chains, db }: Pick<Ctx, 'chains' | 'db'>, payment: NewPayment): Promise<Funds> {
  const { payer, network, asset } = payment
  if (payer === null) throw new Error('nobody pays this payment')
  const chain = chains.on(networkOf(network))
  const [rawBalance = 0n] = await chain.balances([{ token: asset as Address, account: payer as Address }])
  const open = await listOpenOf(db, { payer, network, asset }, openMax)
  return { rawBalance, spentIds: await spentAmong(chain, open) }
}
