import type { Address } from '@purser/protocol'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  aHoldStage,
  aSender,
  clean,
  type HoldStage,
  listed,
  type Movement,
  type Wallet,
} from '../../../../test/hold-stage.ts'
import { listWrongRollups } from '../../../../test/wrong-rollups.ts'

let stage: HoldStage

beforeAll(async () => {
  stage = await aHoldStage()
})
afterAll(() => stage?.stop())

type Standing = Required<Movement>

interface Share {
  readonly taint: bigint
  left: bigint
}

/** The frozen amount of each deposit, by wallet address: one pass over the whole chain, without stored state. */
function frozenByModel(
  movements: readonly Standing[],
  wallets: readonly Wallet[],
  isBad: (sender: Address) => boolean,
): Map<Address, bigint[]> {
  const balances = new Map(wallets.map(({ address }) => [address, 0n]))
  const shares = new Map(wallets.map(({ address }): [Address, Share[]] => [address, []]))
  const inOrder = [...movements].sort((a, b) => Number(a.block - b.block) || a.logIndex - b.logIndex)
  for (const { from, to, raw } of inOrder) {
    let moved = isBad(from) ? raw : 0n
    const sent = shares.get(from)
    if (sent !== undefined) {
      const balance = (balances.get(from) ?? 0n) - raw
      balances.set(from, balance)
      moved = takeBeyond(sent, balance)
    }
    const received = shares.get(to)
    if (received === undefined) continue
    balances.set(to, (balances.get(to) ?? 0n) + raw)
    received.push({ taint: moved, left: moved })
  }
  return new Map([...shares].map(([address, own]) => [address, own.map(({ left }) => left)]))
}

/** Takes the tainted amount that exceeds the balance from the oldest shares. */
function takeBeyond(shares: readonly Share[], balance: bigint): bigint {
  const tainted = shares.reduce((sum, { left }) => sum + left, 0n)
  const excess = tainted > balance ? tainted - balance : 0n
  let rest = excess
  for (const share of shares) {
    const taken = share.left < rest ? share.left : rest
    share.left -= taken
    rest -= taken
  }
  return excess
}

/** Movements of one block each, none of which takes more than its sender's balance. */
function movementsOf(
  draws: readonly { readonly from: number; readonly to: number; readonly share: bigint }[],
  wallets: readonly Wallet[],
  outside: readonly Address[],
  standing: readonly Standing[],
): Standing[] {
  const balances = new Map(wallets.map(({ address }) => [address, 0n]))
  const apply = ({ from, to, raw }: Movement): void => {
    for (const [account, change] of [
      [from, -raw],
      [to, raw],
    ] as const)
      if (balances.has(account)) balances.set(account, (balances.get(account) ?? 0n) + change)
  }
  for (const movement of standing) apply(movement)
  const accounts = [...wallets.map(({ address }) => address), ...outside]
  const first = stage.newestBlock() + 1n
  return draws.flatMap(({ from, to, share }, index) => {
    const [sender, receiver] = [accounts[from % accounts.length], accounts[to % accounts.length]]
    if (sender === undefined || receiver === undefined || sender === receiver) return []
    const balance = balances.get(sender)
    if (balance === undefined && !balances.has(receiver)) return []
    const raw = balance === undefined ? share : (balance * share) / 40n
    if (raw === 0n) return []
    // Every third block has two movements of these.
    const movement = {
      from: sender,
      to: receiver,
      raw,
      block: first + BigInt(index - (index % 3 === 1 ? 1 : 0)),
      logIndex: index,
    }
    apply(movement)
    return [movement]
  })
}

const Draws = fc.array(
  fc.record({ from: fc.nat(100), to: fc.nat(100), share: fc.bigInt(1n, 40n), isLate: fc.nat(9).map((n) => n === 0) }),
  { minLength: 150, maxLength: 200 },
)
const Step = fc.record({ draws: Draws, listing: fc.nat(3), back: fc.option(fc.nat(120), { freq: 3 }) })

/** A history that was a counterexample: a sender is listed when a movement is booked, and clear when it is first screened. */
const oneDraw = (from: number, to: number) => [{ from, to, share: 1n, isLate: false }]
const clearedAtOnce = [
  { draws: oneDraw(0, 0), listing: 3, back: null },
  { draws: oneDraw(4, 0), listing: 0, back: null },
]

test('after every history of deposits, movements, missed logs, reorganizations and listings, the frozen amounts equal those of one pass over the chain', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(Step, { minLength: 3, maxLength: 4 }), async (steps) => {
      const master = await stage.master()
      const wallets = [master, await stage.child(master), await stage.child(master)]
      const [honest, one, two] = [aSender(), aSender(), aSender()]
      let bad: readonly Address[] = []
      let standing: Standing[] = []
      for (const { draws, listing, back } of steps) {
        const fresh = movementsOf(draws, wallets, [honest, one, two], standing)
        const isLate = new Set(fresh.filter((_, index) => draws[index]?.isLate === true))
        const part = fresh.length / 2
        await stage.book(...fresh.slice(0, part).filter((movement) => !isLate.has(movement)))
        await stage.book(...fresh.slice(part).filter((movement) => !isLate.has(movement)))
        await stage.book(...isLate)
        standing = [...standing, ...fresh]
        const now = [[], [one], [two], [one, two]][listing] ?? []
        await stage.nowIs(clean, ...[one, two].filter((sender) => !now.includes(sender)))
        await stage.nowIs(listed, ...now)
        bad = now
        if (back !== null) {
          const above = stage.newestBlock() - BigInt(back)
          await stage.reorganize(above)
          standing = standing.filter(({ block }) => block <= above)
        }
        const model = frozenByModel(standing, wallets, (sender) => bad.includes(sender))
        for (const wallet of wallets) {
          const frozen = (await stage.deposits(wallet)).map((deposit) => BigInt(deposit.frozen))
          expect(frozen).toEqual(model.get(wallet.address))
          expect((await stage.frozen(wallet))[0]).toBe(frozen.reduce((sum, raw) => sum + raw, 0n))
        }
        expect(await listWrongRollups(stage.db)).toEqual([])
      }
    }),
    { numRuns: 5, examples: [[clearedAtOnce]], endOnFailure: true },
  )
})
