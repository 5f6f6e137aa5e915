import { type DevChain, fundToken, startChain, tokenBalance } from '@purser/devnet'
import { type Address, encodeTransfer, networkByName } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import {
  aLane,
  anAccount,
  aSigner,
  effectsOf,
  freeLeases,
  purpose,
  rpc,
  type Stage,
  statusOf,
  takeAllLeases,
} from '../../../test/lane-stage.ts'
import { systemRandom } from '../../platform/random.ts'
import type { ChainTransactionId, FeeSponsor, LaneCall, LaneHandler, Lanes, PlannedTransaction } from '../port.ts'
import { createLanes } from './lanes.ts'
import { resumeLanes } from './resume.ts'
import { replace, sendLanes } from './send.ts'
import { insertLane, listAttempts, listOpen } from './store.ts'

let database: TestDatabase
let tempo: DevChain
let stage: Stage
let payer: Awaited<ReturnType<typeof anAccount>>
let sponsor: FeeSponsor
let lanes: Lanes

beforeAll(async () => {
  database = await freshDatabase()
  tempo = await startChain({ network: 'tempo-moderato' })
  stage = await aLane({ db: database.db, dev: tempo, funded: false })
  payer = await anAccount()
  sponsor = await aSigner()
  const signerOf = async (account: Address) => (account === payer.address ? payer : undefined)
  lanes = createLanes({ ...stage, sponsor, signerOf })
  await freeLeases(database.db)
  lanes.start([stage.handler])
})
afterAll(async () => {
  await lanes?.stop()
  await stage?.outbound.close()
  await tempo?.stop()
  await database?.drop()
})

const anOtherAccount = (): Address => `0x${Buffer.from(systemRandom.bytes(20)).toString('hex')}`
const token = (symbol: string): Address => tempo.tokens[symbol] ?? '0x'

function transferOf(symbol: string, to: Address, rawAmount: bigint): LaneCall {
  return { to: token(symbol), data: encodeTransfer(to, rawAmount), value: 0n }
}

async function sent(
  planned: Omit<PlannedTransaction, 'network' | 'gasLimit' | 'purpose'>,
): Promise<ChainTransactionId> {
  const { network } = stage
  await lanes.prepare(network, payer.address)
  const whole = { ...planned, network, gasLimit: 2_000_000n, purpose }
  const id = await database.db.tx((tx) => lanes.plan(tx, payer.address, whole))
  lanes.notify(network)
  await expect.poll(() => statusOf(database.db, id), { timeout: 60_000 }).toBe('final')
  return id
}

test('the fee is paid in the named fee token, and in the called token when none is named', async () => {
  await fundToken(tempo, 'AlphaUSD', payer.address, 5_000_000n)
  await fundToken(tempo, 'BetaUSD', payer.address, 5_000_000n)
  await sent({ ...transferOf('AlphaUSD', anOtherAccount(), 1_000_000n), feeToken: token('BetaUSD') })
  expect(await tokenBalance(tempo, 'AlphaUSD', payer.address)).toBe(4_000_000n)
  const left = await tokenBalance(tempo, 'BetaUSD', payer.address)
  expect(left).toBeLessThan(5_000_000n)
  await sent(transferOf('AlphaUSD', anOtherAccount(), 1_000_000n))
  expect(await tokenBalance(tempo, 'AlphaUSD', payer.address)).toBeLessThan(3_000_000n)
  expect(await tokenBalance(tempo, 'BetaUSD', payer.address)).toBe(left)
})

test('the calls of one transaction are atomic, and the nonce is used once either way', async () => {
  await fundToken(tempo, 'AlphaUSD', payer.address, 5_000_000n)
  await fundToken(tempo, 'BetaUSD', payer.address, 5_000_000n)
  const [first, second] = [anOtherAccount(), anOtherAccount()]
  const feeToken = token('BetaUSD')
  const before = [transferOf('AlphaUSD', first, 400_000n)]
  await sent({ ...transferOf('AlphaUSD', second, 600_000n), callsBefore: before, feeToken })
  expect(await tokenBalance(tempo, 'AlphaUSD', first)).toBe(400_000n)
  expect(await tokenBalance(tempo, 'AlphaUSD', second)).toBe(600_000n)
  const id = await sent({ ...transferOf('AlphaUSD', second, 10n ** 12n), callsBefore: before, feeToken })
  expect(await effectsOf(database.db, id)).toEqual(['sent', 'mined', 'final'])
  expect(await tokenBalance(tempo, 'AlphaUSD', first), 'the second could not be paid').toBe(400_000n)
})

test('a sponsored transaction costs its sender nothing, down to the last unit', async () => {
  await fundToken(tempo, 'pathUSD', sponsor.address, 5_000_000n)
  await fundToken(tempo, 'ThetaUSD', payer.address, 1_000_000n)
  const before = await Promise.all(['AlphaUSD', 'BetaUSD'].map((one) => tokenBalance(tempo, one, payer.address)))
  const to = anOtherAccount()
  const paid = { feeToken: token('pathUSD'), isSponsored: true }
  const id = await sent({ ...transferOf('ThetaUSD', to, 1_000_000n), ...paid })
  expect(await tokenBalance(tempo, 'ThetaUSD', to)).toBe(1_000_000n)
  expect(await tokenBalance(tempo, 'pathUSD', sponsor.address)).toBeLessThan(5_000_000n)
  expect(await Promise.all(['AlphaUSD', 'BetaUSD'].map((one) => tokenBalance(tempo, one, payer.address)))).toEqual(
    before,
  )
  expect(await effectsOf(database.db, id)).toEqual(['sent', 'mined', 'final'])
})

test('calls are tried in sequence on each other’s state, and a refusal carries the contract’s message', async () => {
  await fundToken(tempo, 'AlphaUSD', payer.address, 5_000_000n)
  const chain = stage.chains.on(stage.network)
  const to = anOtherAccount()
  const own = await tokenBalance(tempo, 'AlphaUSD', payer.address)
  const trial = await chain.tryCalls(payer.address, [transferOf('AlphaUSD', to, own), transferOf('AlphaUSD', to, 0n)])
  expect(trial).toEqual({ ok: true, gasLimit: expect.any(BigInt) })
  const twice = await chain.tryCalls(payer.address, [transferOf('AlphaUSD', to, own), transferOf('AlphaUSD', to, own)])
  expect(twice.ok).toBe(false)
  const count = await rpc(stage.outbound, tempo.rpcUrl, 'eth_getTransactionCount', [to, 'latest'])
  expect([count, await tokenBalance(tempo, 'AlphaUSD', to)], 'nothing was sent').toEqual(['0x0', 0n])
})

test('Tempo-only fields are rejected on a chain with a native coin, where they could never be signed', async () => {
  const base = networkByName('base-sepolia')
  if (base === undefined) throw new Error('no such network')
  await insertLane(database.db, { network: base.name, sender: payer.address }, 0n)
  for (const only of [{ feeToken: token('pathUSD') }, { callsBefore: [transferOf('pathUSD', anOtherAccount(), 1n)] }]) {
    const planned = { ...transferOf('pathUSD', anOtherAccount(), 1n), ...only, network: base, gasLimit: 1n, purpose }
    await expect(database.db.tx((tx) => lanes.plan(tx, payer.address, planned))).rejects.toThrow(
      /one call per transaction/,
    )
  }
})

test('a raised fee is signed only while its account can pay it, and nothing of a refused one is stored', async () => {
  const { parts, handler } = await aLane({ db: database.db, dev: tempo, funded: false })
  const differences: bigint[] = []
  let isCovered = false
  const coverRaise: LaneHandler['coverRaise'] = async (_, more) => {
    differences.push(more)
    return async () => isCovered
  }
  const own = { ...parts, signerOf: () => payer, sponsor, handlers: new Map([[purpose, { ...handler, coverRaise }]]) }
  await lanes.stop()
  await freeLeases(database.db)
  own.leased = await takeAllLeases(database.db, stage.network.name)
  await fundToken(tempo, 'AlphaUSD', payer.address, 5_000_000n)
  await rpc(stage.outbound, tempo.rpcUrl, 'evm_setAutomine', [false])
  try {
    const planned = { ...transferOf('AlphaUSD', anOtherAccount(), 1n), network: stage.network, gasLimit: 2_000_000n }
    const id = await database.db.tx((tx) => lanes.plan(tx, payer.address, { ...planned, purpose }))
    await resumeLanes(own, [payer.address])
    await sendLanes(own, [payer.address])
    const raise = async (): Promise<number> => {
      const [transaction] = await listOpen(database.db, stage.network.name, [payer.address])
      const [last] = (await listAttempts(database.db, [id])).toReversed()
      if (transaction === undefined || last === undefined) throw new Error('nothing waits')
      await replace(own, transaction, last)
      return (await listAttempts(database.db, [id])).length
    }
    expect(await raise()).toBe(1)
    expect(await effectsOf(database.db, id)).toEqual(['sent'])
    isCovered = true
    expect(await raise()).toBe(2)
    const [first, second] = await listAttempts(database.db, [id])
    expect(differences).toEqual(Array(2).fill(((second?.maxFee ?? 0n) - (first?.maxFee ?? 0n)) * 2_000_000n))
    expect(await effectsOf(database.db, id)).toEqual(['sent', 'sent'])
  } finally {
    await rpc(stage.outbound, tempo.rpcUrl, 'evm_setAutomine', [true])
  }
})
