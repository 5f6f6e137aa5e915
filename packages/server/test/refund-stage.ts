import { toHex } from 'viem'
import { expect } from 'vitest'
import { sql } from '../src/platform/db/db.ts'
import { aMaster, driving, type Managed, type TransferStage, untilBooked } from './transfer-stage.ts'
import { type Answer, aPayer, type Payer, request } from './world.ts'

export interface Sold {
  readonly paymentId: string
  readonly master: Managed
  readonly payer: Payer
  readonly nonce: `0x${string}`
  readonly before: `0x${string}`
}

/** A payment of 2.5 USDC, settled at the payment depth; `before` is the chain before it. */
export async function aSettledPayment(stage: TransferStage): Promise<Sold> {
  const { world, key, chain, clock } = stage
  const master = await aMaster(stage)
  // Tests move the clock by minutes, which is longer than a signature by the system's clock stays valid.
  const payer = await aPayer(stage.dev, undefined, clock)
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const terms = { walletId: master.id, price: '2.5', resource: 'https://api.example.com/weather' }
  const before = await chain.snapshot()
  const credential = await payer.credential(await world.call(key, 'POST', '/payments/challenge', terms), {
    sign: { nonce },
  })
  const { body } = await world.call(key, 'POST', '/payments/verify', { ...terms, protocol: 'x402', credential })
  const { paymentId, settlementToken } = body
  const settled = async () => {
    const answer = await world.call(key, 'POST', '/payments/settle', { paymentId, settlementToken })
    await chain.mine({ blocks: 5 })
    return answer.status
  }
  await expect.poll(settled, driving).toBe(200)
  return { paymentId: String(paymentId), master, payer, nonce, before }
}

/** Requests a refund from a process that does not wait for its block. */
export function refund({ hasty, key }: TransferStage, paymentId: string, headers = {}): Promise<Answer> {
  return request(hasty.base, { key, method: 'POST', path: `/payments/${paymentId}/refund`, body: {}, headers })
}

/** Mines blocks until all so far are final, and waits until the watcher has read them. */
export async function mineUntilFinal(stage: TransferStage): Promise<void> {
  await stage.chain.mine({ blocks: 40 })
  await untilBooked(stage.world, stage.dev)
}

/** As if the payment had been settled 25 hours ago. */
export function dayLater({ world }: TransferStage, paymentId: string): Promise<number> {
  return world.database.db.run(
    sql`update payments set settled_at = settled_at - interval '25 hours' where id = ${paymentId}`,
  )
}
