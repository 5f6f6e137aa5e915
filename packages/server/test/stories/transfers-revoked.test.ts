import { sandboxBridgeAddress, tokenBalance } from '@purser/devnet'
import { formatAmount, networkByName } from '@purser/protocol'
import { createPublicClient, createTestClient, http, parseAbi, publicActions } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { deleteEnded, markReservationsEnded } from '../../src/features/funds/store.ts'
import { revokeApprovals } from '../../src/features/transfers/revoke.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { auditedActions } from '../audited.ts'
import {
  aPartnerStage,
  bridgeOf,
  type Conduct,
  type Managed,
  type PartnerStage,
  path,
  stranger,
} from '../partner-stage.ts'
import { untilBooked } from '../transfer-stage.ts'
import { type Answer, codeOf } from '../world.ts'

const alwaysReverts = '0x60006000fd'
const abi = parseAbi(['function allowance(address owner, address spender) view returns (uint256)'])

let stage: PartnerStage
let node: ReturnType<typeof nodeOf>

beforeAll(async () => {
  stage = await aPartnerStage()
  node = nodeOf()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())
afterEach(() => node.setAutomine(true))

function nodeOf() {
  return createTestClient({ mode: 'anvil', transport: http(stage.base.rpcUrl) }).extend(publicActions)
}

function allowed({ address: owner }: Managed): Promise<bigint> {
  const client = createPublicClient({ transport: http(stage.base.rpcUrl) })
  const address = stage.base.tokens.USDC ?? '0x'
  return client.readContract({ address, abi, functionName: 'allowance', args: [owner, sandboxBridgeAddress] })
}

/** The number of the wallet's transactions that its node has, in blocks or pending. */
function broadcastBy({ address }: Managed): Promise<number> {
  return createPublicClient({ transport: http(stage.base.rpcUrl) }).getTransactionCount({
    address,
    blockTag: 'pending',
  })
}

/** The number of open revocations for failed transfers, without those that wait for coin or that the token refuses. */
async function leftToRevoke(): Promise<number> {
  const { count } = await stage.world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select (select count(*) from transfers where revoke_at < now() + interval '2 minutes')
      + (select count(*) from chain_transactions where status <> 'final') as count`,
  )
  return Number(count)
}

const untilAtRest = () => expect.poll(leftToRevoke, { timeout: 60_000 }).toBe(0)

/** A call that succeeds when it is planned, and no longer once its approval is mined. */
function refusedOnceApproved(): Conduct {
  const planned = new Set<string>()
  return {
    expects: (own, { data }) => {
      if (planned.has(data)) return undefined
      planned.add(data)
      return own()
    },
  }
}

const idOf = ({ body }: Answer) => body.transferId

test('a call that is refused after its approval leaves no allowance, and the transfer is reported as it ended', async () => {
  const master = await stage.aMaster()
  stage.conduct = refusedOnceApproved()
  const refused = await stage.send(bridgeOf(master))
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'transfer-reverted', 'call-refused'])
  const before = (await stage.world.call(stage.org.testKey, 'GET', `/wallet-infra/transfers/${idOf(refused)}`)).body
  await untilAtRest()
  expect(await allowed(master)).toBe(0n)
  expect(await stage.countOf(master)).toBe(2)
  const after = (await stage.world.call(stage.org.testKey, 'GET', `/wallet-infra/transfers/${idOf(refused)}`)).body
  expect(after).toEqual(before)
  expect(await stage.eventsOf(idOf(refused))).toEqual([])
  expect(await auditedActions(stage.world.database.db, idOf(refused))).toEqual([
    'transfers.create api-key',
    'transfers.failed system',
    'transfers.revoke system',
  ])
})

test('a partner’s call that reverts in its block leaves no allowance', async () => {
  const master = await stage.aMaster()
  const client = createPublicClient({ transport: http(stage.base.rpcUrl) })
  const bytecode = (await client.getCode({ address: sandboxBridgeAddress })) ?? '0x'
  await node.setAutomine(false)
  const sending = stage.send(bridgeOf(master))
  await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(1)
  await node.mine({ blocks: 1 })
  await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(2)
  expect(await allowed(master)).toBe(50_000_000n)
  await node.setCode({ address: sandboxBridgeAddress, bytecode: alwaysReverts })
  await node.mine({ blocks: 1 })
  const refused = await sending
  expect([refused.status, refused.body.reason]).toEqual([422, 'reverted'])
  await node.setCode({ address: sandboxBridgeAddress, bytecode })
  await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(3)
  await node.mine({ blocks: 1 })
  await untilAtRest()
  expect(await allowed(master)).toBe(0n)
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(100_000_000n)
})

/** Delays the revocations of failed transfers until `look` is called. */
async function whileRevocationsWait(work: (look: () => Promise<void>) => Promise<void>): Promise<void> {
  const { db } = stage.world.database
  const ddl = (text: string) => db.run({ text, values: [] })
  await ddl(`create function hold() returns trigger language plpgsql as
    $$ begin if old.revoke_at is null and new.revoke_at is not null then new.revoke_at := 'infinity'; end if; return new; end $$`)
  await ddl('create trigger hold before update on transfers for each row execute function hold()')
  try {
    await work(() =>
      db.run(sql`update transfers set revoke_at = now() where revoke_at = 'infinity'`).then(() => undefined),
    )
  } finally {
    await ddl('drop trigger hold on transfers')
    await ddl('drop function hold')
  }
}

/** Makes the token revert in the next block, which includes the wallet's transaction of this number. */
async function revertOne(master: Managed, number: number): Promise<void> {
  const address = stage.base.tokens.USDC ?? '0x'
  const bytecode = (await createPublicClient({ transport: http(stage.base.rpcUrl) }).getCode({ address })) ?? '0x'
  await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(number)
  await node.setCode({ address, bytecode: alwaysReverts })
  await node.mine({ blocks: 1 })
  await node.setCode({ address, bytecode })
}

test.each([
  [1, 'is sent again', { transactions: 3, allowed: 0n }],
  [3, 'is given up, and the wallet pays for no fourth', { transactions: 4, allowed: 50_000_000n }],
])(
  'a revocation that reverts, %i times, %s',
  async (reverts, _, { transactions, allowed: left }) => {
    const master = await stage.aMaster()
    stage.conduct = refusedOnceApproved()
    await whileRevocationsWait(async (look) => {
      const refused = await stage.send(bridgeOf(master))
      expect(refused.status).toBe(422)
      await node.setAutomine(false)
      await look()
      for (let revert = 1; revert <= reverts; revert++) await revertOne(master, revert + 1)
      await node.setAutomine(true)
      await untilAtRest()
      const actions = await auditedActions(stage.world.database.db, idOf(refused))
      expect(actions.slice(2)).toEqual(Array(transactions - 1).fill('transfers.revoke system'))
    })
    expect([await allowed(master), await stage.countOf(master)]).toEqual([left, transactions])
  },
  60_000,
)

test('checks at once by several processes, and while a revocation waits for its block, store it once', async () => {
  const master = await stage.aMaster()
  stage.conduct = refusedOnceApproved()
  await whileRevocationsWait(async (look) => {
    expect((await stage.send(bridgeOf(master))).status).toBe(422)
    await node.setAutomine(false)
    const ctx = systemCtx(stage.world.server.deps)
    const network = networkByName(stage.base.network)
    if (network === undefined) throw new Error('no such network')
    const revoke = () => revokeApprovals.runOn(ctx, network)
    for (let check = 1; check <= 3; check += 1) {
      await stage.world.database.db.run(sql`update transfers set revoke_at = now() where revoke_at is not null`)
      await Promise.all([look(), ...Array.from({ length: 4 }, revoke)])
      await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(2)
    }
    await node.mine({ blocks: 1 })
    await node.setAutomine(true)
    await untilAtRest()
  })
  expect([await allowed(master), await stage.countOf(master)]).toEqual([0n, 2])
})

test('a wallet without the coin for it keeps its allowance, of exactly the amount, and nothing hangs', async () => {
  const master = await stage.aMaster()
  stage.conduct = refusedOnceApproved()
  await whileRevocationsWait(async (look) => {
    expect((await stage.send(bridgeOf(master))).status).toBe(422)
    await node.setBalance({ address: master.address, value: 0n })
    await node.mine({ blocks: 1 })
    await untilBooked(stage.world, stage.base)
    await look()
    await untilAtRest()
  })
  expect([await allowed(master), await stage.countOf(master)]).toEqual([50_000_000n, 1])

  await node.setBalance({ address: master.address, value: 10n ** 18n })
  await node.mine({ blocks: 1 })
  await untilBooked(stage.world, stage.base)
  await deleteEndedReservations()
  expect(codeOf(await stage.send(paymentOf(master, '51'))), 'the contract may still take 50').toBe(
    'insufficient-balance',
  )
  await lookAgain()
  await untilAtRest()
  expect([await allowed(master), await stage.countOf(master)]).toEqual([0n, 2])
  await untilBooked(stage.world, stage.base)
  expect((await stage.send(paymentOf(master, '51'))).status).toBe(201)
})

/** Deletes the reservations that no balance needs any more, as if all time for them had passed. */
async function deleteEndedReservations(): Promise<void> {
  const { db } = stage.world.database
  await markReservationsEnded(db, 'base-sepolia', 0n)
  await deleteEnded(db, { seconds: -1, most: 1_000 })
}

/** A transfer of USDC on the wallet's own chain. */
function paymentOf(from: Managed, amount: string) {
  return { fromWalletId: from.id, fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount, toAddress: stranger() }
}

/** Makes the next look at every approval that is in place due. */
async function lookAgain(): Promise<void> {
  await stage.world.database.db.run(sql`update transfers set revoke_at = now() where revoke_at is not null`)
}

test('what a failed transfer’s contract may still take is not spent elsewhere, and is again once the allowance is gone', async () => {
  const master = await stage.aMaster()
  stage.conduct = refusedOnceApproved()
  await whileRevocationsWait(async (look) => {
    expect((await stage.send(bridgeOf(master))).status).toBe(422)
    await untilBooked(stage.world, stage.base)
    const refused = await stage.send(paymentOf(master, '51'))
    expect([refused.status, codeOf(refused)]).toEqual([422, 'insufficient-balance'])
    expect((await stage.send(paymentOf(master, '20'))).status).toBe(201)
    expect(await allowed(master)).toBe(50_000_000n)
    await look()
    await untilAtRest()
  })
  expect(await allowed(master)).toBe(0n)
  await untilBooked(stage.world, stage.base)
  expect((await stage.send(paymentOf(master, '80'))).status).toBe(201)
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(0n)
})

test('a partner’s call that reverts in its block frees nothing until its allowance is gone', async () => {
  const master = await stage.aMaster()
  const bytecode = (await node.getCode({ address: sandboxBridgeAddress })) ?? '0x'
  await whileRevocationsWait(async (look) => {
    await node.setAutomine(false)
    const sending = stage.send(bridgeOf(master))
    await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(1)
    await node.mine({ blocks: 1 })
    await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(2)
    await node.setCode({ address: sandboxBridgeAddress, bytecode: alwaysReverts })
    await node.mine({ blocks: 1 })
    expect((await sending).body.reason).toBe('reverted')
    await node.setCode({ address: sandboxBridgeAddress, bytecode })
    await node.setAutomine(true)
    await node.mine({ blocks: 1 })
    await untilBooked(stage.world, stage.base)
    expect(codeOf(await stage.send(paymentOf(master, '51')))).toBe('insufficient-balance')
    await look()
    await untilAtRest()
  })
  await untilBooked(stage.world, stage.base)
  expect((await stage.send(paymentOf(master, '51'))).status).toBe(201)
})

test('a transfer waits until a failed one’s allowance is revoked, and is then sent', async () => {
  const master = await stage.aMaster()
  stage.conduct = refusedOnceApproved()
  await whileRevocationsWait(async (look) => {
    expect((await stage.send(bridgeOf(master))).status).toBe(422)
    stage.renew()
    const sending = stage.send(bridgeOf(master))
    await expect.poll(() => waitingOf(master), { timeout: 60_000 }).toBe(1n)
    expect(await broadcastBy(master)).toBe(1)
    await look()
    const sent = await sending
    expect(sent.status).toBe(201)
    await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(4)
    await stage.relayer.pass()
    expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed' })
  })
  await untilAtRest()
  expect([await allowed(master), await stage.countOf(master)]).toEqual([0n, 4])
})

/** The number of the wallet's transfers that wait for another at the same contract. */
async function waitingOf({ address }: Managed): Promise<bigint> {
  const statement = sql`select count(*) as count from approvals where owner = ${address.toLowerCase()} and state = 'waiting'`
  return (await stage.world.database.db.one(z.object({ count: z.bigint() }), statement)).count
}

/** The most gas that a wallet's policy counts for its newest transfer, in wei. */
async function gasCounted({ address }: Managed): Promise<bigint> {
  const { wei } = await stage.world.database.db.one(
    z.object({ wei: z.string().transform(BigInt) }),
    sql`
    select atto_amount::text as wei from policy_reservations
    where subject_id = (select max(id) from transfers where from_address = ${address}) || ' gas'`,
  )
  return wei
}

test('a transfer that waited at a contract counts the gas of the plan with which it begins', async () => {
  const master = await stage.aMaster()
  await node.setAutomine(false)
  const body = bridgeOf(master, { amount: '20' })
  const first = stage.send(body)
  await expect.poll(() => broadcastBy(master)).toBe(1)
  const second = stage.send(body)
  await expect.poll(() => waitingOf(master)).toBe(1n)
  const before = await gasCounted(master)
  const client = createPublicClient({ transport: http(stage.base.rpcUrl) })
  // The first transfer approves and calls at rising fees, which its offers allow.
  for (const sent of [2, 3]) {
    const { baseFeePerGas } = await client.getBlock()
    await node.setNextBlockBaseFeePerGas({ baseFeePerGas: ((baseFeePerGas ?? 0n) * 5n) / 4n })
    await node.mine({ blocks: 1 })
    await expect.poll(() => broadcastBy(master)).toBe(sent)
  }
  const quoted = await stage.world.call(stage.org.testKey, 'POST', `${path}/quote`, body)
  const counted = await gasCounted(master)
  expect(counted).toBeGreaterThan(before)
  expect(formatAmount(counted, 18)).toBe(quoted.body.feeAmount)
  await node.setAutomine(true)
  await node.mine({ blocks: 1 })
  expect([(await first).status, (await second).status]).toEqual([201, 201])
  await untilAtRest()
})
