import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import type { NewPayment } from '../../src/features/payments/store.ts'
import type { Ctx } from '../../src/modules.ts'
import { sql } from '../../src/platform/db/db.ts'
import { isProblem } from '../../src/platform/errors.ts'
import { newId } from '../../src/platform/ids.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import { aWorld, type World } from '../world.ts'

let world: World
beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world?.stop())

const many = 60

function payment(ctx: Ctx, claimKey: string, challengeId: string): NewPayment {
  return {
    id: newId('pay', ctx),
    logId: newId('plog', ctx),
    walletId: null,
    apiKeyId: newId('key', ctx),
    protocol: 'mpp',
    protocolVersion: null,
    claimKey,
    entryPoint: 'verify',
    scheme: 'charge',
    challengeId,
    paymentIdentifier: null,
    paymentFingerprint: null,
    chain: 'tempo-moderato',
    network: 'tempo-moderato',
    token: 'pathUSD',
    asset: '0x20C0000000000000000000000000000000000000',
    decimals: 6,
    rawAmount: 1n,
    payer: null,
    payTo: `0x${'11'.repeat(20)}`,
    settlement: null,
    validBefore: null,
    resource: null,
    route: null,
    method: null,
    description: null,
    status: 'settled',
    txHash: null,
    settlingAt: null,
    settledAt: ctx.clock.now(),
    delivery: null,
    createdAt: ctx.clock.now(),
  }
}

test('two processes that record the same challenges in opposite orders do not fail each other', async () => {
  const other = await world.another()
  const org = await world.organisation()
  const ctxOf = ({ deps }: World['server']): Ctx =>
    forTenant(systemCtx(deps), { organisationId: org.id, environment: 'test' })
  const [one, two] = [ctxOf(world.server), ctxOf(other.server)]
  for (let round = 0; round < 5; round++) {
    const numbers = Array.from({ length: many }, (_, index) => `${round}-${String(index).padStart(2, '0')}`)
    const first = numbers.map((number) => payment(one, `first:${number}`, `challenge:${number}`))
    const second = numbers.map((number, index) =>
      payment(two, `second:${number}`, `challenge:${numbers[many - 1 - index]}`),
    )
    const outcomes = await Promise.allSettled([
      ...first.map((made) => one.recordPayment({ ctx: one, payment: made })),
      ...second.map((made) => two.recordPayment({ ctx: two, payment: made })),
    ])
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason)
    expect(refused.map((reason) => (isProblem(reason) ? reason.code : String(reason)))).toEqual(
      Array(many).fill('duplicate-payment'),
    )
  }
  const row = z.object({ count: z.bigint(), events: z.bigint() })
  const counted = await world.database.db.one(
    row,
    sql`select (select count(*) from payments) as count, (select count(*) from events where type = 'payment.received') as events`,
  )
  expect(counted).toEqual({ count: BigInt(many * 5), events: BigInt(many * 5) })
})
