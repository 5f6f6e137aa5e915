import type { Address, Hex } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createChains } from '../src/chain/chains.ts'
import { readFunds } from '../src/features/payments/funds.ts'
import { createRecorder } from '../src/features/payments/index.ts'
import { newId } from '../src/platform/ids.ts'
import { createLog } from '../src/platform/log.ts'
import { forTenant, systemCtx } from '../src/platform/work/runner.ts'
import { freshDatabase } from './database.ts'
import { chanceOf } from './sim/chance.ts'
import { liarAbout } from './sim/lies.ts'
import { newPaymentOf } from './sim/new-payment.ts'
import { outboundTo, SimNode } from './sim/nodes.ts'
import { aChain, aStage, type Stage } from './sim/stage.ts'
import { usedKey } from './sim/token.ts'

let stage: Stage

beforeAll(async () => {
  stage = await aStage(await freshDatabase())
})
afterAll(() => stage?.stop())

const payTo: Address = `0x${'d'.repeat(40)}`
const from: Address = `0x${'a'.repeat(40)}`
const nonceOf = (index: number): Hex => `0x${index.toString(16).padStart(64, '0')}`

test('the balances of a payer with 500 open payments are read with two calls, and with one when read again in the same block', async () => {
  const { db, deps, network } = stage
  const [tenant] = stage.tenants
  if (tenant === undefined) throw new Error('there is no organisation')
  const chance = chanceOf(1)
  const chain = aChain(stage, chance, BigInt(Date.now()))
  chain.head.state.balances.set(from, 7n)
  for (const index of [3, 499]) chain.head.state.used.add(usedKey(from, nonceOf(index)))
  const liar = liarAbout(chain, chance, () => [])
  const node = new SimNode(0, { chain, chainId: network.chainId, chance, liar })
  const truth = node.answer.bind(node)
  let calls = 0
  node.answer = (method, params) => {
    if (method !== 'eth_chainId') calls += 1
    return truth(method, params)
  }
  const outbound = outboundTo([node], { around: (_, doing) => doing(), wait: async () => undefined })
  const log = createLog({ level: 'silent' })
  const rpcUrls = { [network.name]: [node.url] }
  const chains = createChains({ outbound, clock: deps.clock, networks: [network], rpcUrls, rpcTimeoutMs: 1_000, log })
  const apiKeyId = newId('key', deps)
  const actor = { kind: 'api-key', apiKeyId } as const
  const ctx = { ...forTenant(systemCtx({ ...deps, chains }), tenant), actor }
  const payments = Array.from({ length: 500 }, (_, index) =>
    newPaymentOf(ctx, stage, {
      signed: {
        form: 'eip3009',
        authorization: { from, to: payTo, value: 1n, validBefore: 4_000_000_000n, nonce: nonceOf(index) },
      },
      kind: 'honest',
      entryPoint: 'verify',
      claimKey: String(index),
      challengeId: '',
    }),
  )
  const record = createRecorder({ db }, { nanoUsdPerDayMax: 10n ** 18n, openPerPayerMax: 500, verifiedMsMax: 60_000 })
  await Promise.all(payments.map((payment) => record({ ctx, payment })))
  const [payment] = payments
  if (payment === undefined) throw new Error('there is no payment')

  const spentIds = [payments[3], payments[499]].map((spent) => spent?.id).toSorted()
  const funds = await readFunds(ctx, payment)
  expect({ ...funds, spentIds: [...funds.spentIds].toSorted() }).toEqual({ rawBalance: 7n, spentIds })
  expect(calls).toBe(2)
  expect(await readFunds(ctx, payment)).toEqual(funds)
  expect(calls).toBe(3)
  chain.head.state.balances.set(from, 5n)
  chain.mine(BigInt(Date.now()))
  node.sync()
  expect((await readFunds(ctx, payment)).rawBalance).toBe(5n)
  expect(calls).toBe(5)
  // The node goes on showing the same block.
  chain.head.state.balances.set(from, 3n)
  expect((await readFunds(ctx, payment)).rawBalance).toBe(5n)
  const later = { ...ctx, clock: { now: () => new Date(ctx.clock.now().getTime() + 10_000) } }
  expect((await readFunds(later, payment)).rawBalance).toBe(3n)
}, 60_000)
