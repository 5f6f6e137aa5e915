import { tokenBalance } from '@purser/devnet'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
import { sql } from '../../src/platform/db/db.ts'
import {
  aMaster,
  aTransferStage,
  attemptsOf,
  driving,
  type Managed,
  masters,
  patient,
  stranger,
  type TransferStage,
} from '../transfer-stage.ts'
import { type Answer, codeOf } from '../world.ts'

let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia' })
})
afterEach(async () => {
  stage.node.tellTheTruth()
  await stage.chain.setAutomine(true)
})
afterAll(() => stage?.stop())

const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }

async function withdraw(master: Managed, amount: string): Promise<Answer> {
  const { world, key } = stage
  const account = await world.call(key, 'POST', '/wallet-infra/bank-accounts', gbp)
  const body = { fromWalletId: master.id, token: 'USDC', chain: 'base', amount, bankAccountId: account.body.id }
  return world.call(key, 'POST', '/wallet-infra/withdraw', body)
}

async function transferIdOf({ body }: Answer): Promise<string> {
  const read = async () => {
    const { transferId } = await stage.world.database.db.one(
      z.object({ transferId: z.string().nullable() }),
      sql`select transfer_id from withdrawals where id = ${String(body.id)}`,
    )
    return transferId
  }
  await expect.poll(read, patient).not.toBeNull()
  return String(await read())
}

async function endsOf({ body }: Answer): Promise<readonly string[]> {
  const rows = await stage.world.database.db.many(
    z.object({ type: z.string() }),
    sql`select type from events where payload ->> 'withdrawalId' = ${String(body.id)} and type <> 'withdrawal.updated'`,
  )
  return rows.map(({ type }) => type)
}

async function admin(...args: string[]): Promise<unknown> {
  const { stdout } = await runAdmin([...args, '--format', 'json'], { DATABASE_URL: stage.world.database.url })
  return JSON.parse(stdout)
}

const Listed = z.array(z.record(z.string(), z.unknown()))

test('a withdrawal whose nonce another transaction used has not failed and is not paid again, until the operator ends its transfer', async () => {
  const master = await aMaster(stage)
  const policy = { operations: { withdraw: { recipients: 'any' } }, tokens: { USDC: { perDay: '100' } } }
  const set = await stage.world.call(stage.key, 'PUT', `${masters}/${master.id}/policy`, policy)
  expect(set.status).toBe(200)
  await stage.chain.setAutomine(false)
  stage.node.lie('eth_sendRawTransaction', () => ({ result: `0x${'0'.repeat(64)}` }))
  const made = await withdraw(master, '60')
  expect(made.status).toBe(201)
  const transferId = await transferIdOf(made)
  await expect.poll(async () => (await attemptsOf(stage, transferId)).length, patient).toBe(1)

  // Another holder of the wallet's key uses its nonce.
  await stage.chain.impersonateAccount({ address: master.address })
  const spent = { account: master.address, to: stranger(), value: 1n, chain: null, gas: 21_000n }
  await stage.chain.sendTransaction(spent)
  await stage.chain.mine({ blocks: 5 })
  stage.node.tellTheTruth()
  const unknown = async () => {
    stage.clock.forward(130_000)
    return Listed.parse(await admin('unknown-transfers')).map(({ transferId: id, doubt }) => [id, doubt])
  }
  await expect.poll(unknown, driving).toEqual([[transferId, 'nonce']])
  const read = async () => (await stage.world.call(stage.key, 'GET', `/wallet-infra/withdrawals/${made.body.id}`)).body
  expect([(await read()).reason, await endsOf(made)]).toEqual([null, []])
  expect((await read()).status).toMatch(/^pending/)
  const again = await withdraw(master, '50')
  expect([again.status, codeOf(again)], 'the policy still counts it').toEqual([403, 'policy-denied'])

  expect(await admin('end-transfer', '--transfer', transferId, '--delivered-by', `0x${'1'.repeat(64)}`)).toMatchObject({
    isEnded: false,
  })
  expect(await admin('end-transfer', '--transfer', transferId, '--not-moved', 'yes')).toMatchObject({ isEnded: true })
  const failed = async () => {
    stage.clock.forward(10_000)
    return endsOf(made)
  }
  await expect.poll(failed, driving).toEqual(['withdrawal.failed'])
  expect(await tokenBalance(stage.dev, 'USDC', master.address)).toBe(100_000_000n)
  expect((await withdraw(master, '50')).status).toBe(201)
})
