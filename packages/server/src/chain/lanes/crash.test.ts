import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import {
  aLane,
  attemptsOf,
  effectsOf,
  planPayment,
  runLane,
  type Stage,
  statusOf,
  stepsOf,
  weiOf,
} from '../../../test/lane-stage.ts'
import { Death, lifeOf, mortalDb } from '../../../test/mortal.ts'
import type { LaneParts } from './send.ts'

let database: TestDatabase
let dev: DevChain
let stage: Stage

beforeAll(async () => {
  database = await freshDatabase()
  dev = await startChain({ network: 'base-sepolia' })
  stage = await aLane({ db: database.db, dev })
})
afterAll(async () => {
  await stage?.outbound.close()
  await dev?.stop()
  await database?.drop()
})

test('a process may crash before or after any step of a lane, and the next process gets the payment mined exactly once', async () => {
  let deaths = 0
  for (let lifetime = 1; lifetime <= 200; lifetime++) {
    const payment = await planPayment(stage)
    const died = await runUntilDeath(lifetime)
    if (died) await runLane(stage)
    expect(await weiOf(stage, payment.to), `wei paid after a crash at step ${lifetime}`).toBe(1n)
    expect(await effectsOf(database.db, payment.id), `effects after a crash at step ${lifetime}`).toEqual([
      'sent',
      'mined',
      'final',
    ])
    expect(await attemptsOf(database.db, payment.id)).toHaveLength(1)
    expect(await statusOf(database.db, payment.id)).toBe('final')
    if (!died) break
    deaths += 1
  }
  // The process crashed before every statement, transaction, commit, signature and call.
  expect(deaths).toBeGreaterThanOrEqual(10)
  expect(deaths).toBeLessThan(200)
})

test('several payments in one lane all arrive once, wherever the process crashes between them', async () => {
  for (let lifetime = 3; lifetime <= 31; lifetime += 4) {
    const payments = [await planPayment(stage), await planPayment(stage), await planPayment(stage)]
    if (await runUntilDeath(lifetime)) await runLane(stage)
    expect(await Promise.all(payments.map(({ to }) => weiOf(stage, to)))).toEqual([1n, 1n, 1n])
    const due = payments.map(async ({ id }) => stepsOf(await attemptsOf(database.db, id)))
    expect(await Promise.all(payments.map(({ id }) => effectsOf(database.db, id)))).toEqual(await Promise.all(due))
  }
})

/** Returns whether the process crashed. From its n-th step on every call fails, as for a process that is gone. */
async function runUntilDeath(lifetime: number): Promise<boolean> {
  const mortal = mortalParts(stage.parts, lifetime)
  try {
    await runLane({ parts: mortal.parts, lane: stage.lane }, async () => mortal.isDead())
  } catch (error) {
    if (!(error instanceof Death)) throw error
  }
  return mortal.isDead()
}

function mortalParts(parts: LaneParts, lifetime: number): { parts: LaneParts; isDead(): boolean } {
  const life = lifeOf(lifetime)
  const { before } = life
  const { db } = parts.deps
  const { chain } = parts
  return {
    isDead: life.isDead,
    parts: {
      ...parts,
      deps: {
        ...parts.deps,
        db: mortalDb(db, life),
      },
      signerOf: (account) => {
        const signer = parts.signerOf(account)
        return { ...signer, signTransaction: (fields) => before(() => signer.signTransaction(fields)) }
      },
      chain: {
        ...chain,
        head: () => before(() => chain.head()),
        suggestedTip: () => before(() => chain.suggestedTip()),
        transactionCount: (account) => before(() => chain.transactionCount(account)),
        send: (raws) => before(() => chain.send(raws)),
        watch: (senders, hashes) => before(() => chain.watch(senders, hashes)),
      },
    },
  }
}
