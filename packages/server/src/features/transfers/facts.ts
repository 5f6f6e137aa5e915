import type { Address, Network } from '@purser/protocol'
import type { Holding, OfferedFees } from '../../chain/port.ts'
import type { Ctx } from '../../platform/ctx.ts'
import type { Db } from '../../platform/db/db.ts'
import { gather } from '../../platform/db/gather.ts'
import type { SourceWallet } from '../wallets/index.ts'
import { listNextNonces, listOpenCosts, listPromised } from './facts-store.ts'
import { listLastNumbers } from './gasless/store.ts'
import { type Held, readHeld } from './held.ts'
import { amountUnderSweep } from './under-sweep.ts'
import type { Coin } from './weigh.ts'

/** A wallet, and of what it is to send. */
export interface Place {
  readonly source: SourceWallet
  readonly network: Network
  readonly coin: Coin
}

/** What a wallet has and has promised, as of a moment ago. */
export interface Facts {
  readonly fees: OfferedFees
  /**
   * The nonces that the wallet and its master give next: whoever takes one of these or a later one comes after. And the number of the
   * wallet's newest authorisation: whatever has a greater one does.
   */
  readonly since: { readonly source: bigint; readonly master: bigint; readonly authorised: bigint }
  /** What its transfers will still take: of the token, and most wei of the wallet and its master. */
  readonly promised: { readonly token: bigint; readonly native: bigint; readonly masterNative: bigint }
  /** What sweeps on Tempo will take of the token, which is in `promised` too. */
  readonly sweeping: bigint
  readonly held: Held
  readonly own: Holding
  readonly master: Holding
}

interface Question {
  readonly ctx: Ctx
  readonly place: Place
}

type Read = (question: Question) => Promise<Facts | Error>
const readers = new WeakMap<Db, Map<string, Read>>()

/**
 * Weighs a wallet. What is promised is read before the balance, so that a transfer that a block takes in between counts twice for a moment
 * and never not at all; and so is what screening holds. Whoever asks at the same time shares the reading, which begins after all of them asked;
 * a token that says no balance is unavailable to those alone who ask about it.
 */
export async function readFacts(ctx: Ctx, place: Place): Promise<Facts> {
  const networks = readers.get(ctx.db) ?? new Map<string, Read>()
  readers.set(ctx.db, networks)
  const read =
    networks.get(place.network.name) ?? gather<Question, Facts | Error>({ itemsMax: 256, roundsMax: 1 }, readTogether)
  networks.set(place.network.name, read)
  const facts = await read({ ctx, place })
  if (facts instanceof Error) throw facts
  return facts
}

async function readTogether(questions: readonly Question[]): Promise<(Facts | Error)[]> {
  const facts = await readEach(questions)
  return questions.map((question) => found(facts, nameOf(question)))
}

/** By the name of each question, all of one network; the same ones are asked once. */
async function readEach(questions: readonly Question[]): Promise<Map<string, Facts | Error>> {
  const asked = new Map(questions.map((question) => [nameOf(question), question]))
  const places = [...asked.values()]
  const [first] = places
  if (first === undefined) return new Map()
  const { ctx, place } = first
  const chain = ctx.chains.on(place.network)
  const fees = await chain.offeredFees()
  const network = place.network.name
  const addresses = [...new Set(places.flatMap(({ place: { source } }) => [source.address, source.masterAddress]))]
  const accounts = addresses.map((address) => ({ network, address, ...fees }))
  const nonces = new Map((await listNextNonces(ctx.db, accounts)).map((row) => [row.address, row.nextNonce]))
  const numbers = new Map((await listLastNumbers(ctx.db, accounts)).map((row) => [row.address, row.number]))
  const [tokens, costs, sweeps, held] = await Promise.all([
    listPromised(ctx.db, accounts),
    listOpenCosts(ctx.db, accounts),
    Promise.all(places.map((one) => amountUnderSweep(ctx.db, one.place))),
    readHeld(
      ctx,
      places.map((one) => ({ tenant: one.ctx.tenant, place: one.place })),
    ),
  ])
  const wei = new Map(costs.map((row) => [row.address, row.wei]))
  const raw = new Map(tokens.map((row) => [`${row.address} ${row.token}`, row.raw]))
  const holdings = await Promise.all(
    places.map((one) => chain.holdings(questionsOf(one)).catch((error: Error) => error)),
  )
  return new Map<string, Facts | Error>(
    [...asked.keys()].map((name, index) => {
      const { source, coin } = found(asked, name).place
      const { address, masterAddress } = source
      const since = {
        source: nonces.get(address) ?? 0n,
        master: nonces.get(masterAddress) ?? 0n,
        authorised: numbers.get(address) ?? 0n,
      }
      const promised = {
        token: (raw.get(`${address} ${coin.symbol}`) ?? 0n) + at(sweeps, index),
        native: wei.get(address) ?? 0n,
        masterNative: wei.get(masterAddress) ?? 0n,
      }
      const both = at(holdings, index)
      if (both instanceof Error) return [name, both]
      return [
        name,
        {
          fees,
          since,
          promised,
          sweeping: at(sweeps, index),
          held: at(held, index),
          own: at(both, 0),
          master: at(both, 1),
        },
      ]
    }),
  )
}

function questionsOf({ place: { source, coin } }: Question): { account: Address; tokens: Address[] }[] {
  const tokens = coin.address === undefined ? [] : [coin.address]
  return [
    { account: source.address, tokens },
    { account: source.masterAddress, tokens: [] },
  ]
}

function nameOf({ ctx: { tenant }, place: { source, network, coin } }: Question): string {
  return [tenant.organisationId, tenant.environment, network.name, source.id, coin.symbol].join(' ')
}

function found<T>(all: ReadonlyMap<string, T>, name: string): T {
  const one = all.get(name)
  if (one === undefined) throw new Error('a wallet was asked about and not read')
  return one
}

function at<T>(all: readonly T[], index: number): T {
  const one = all[index]
  if (one === undefined) throw new Error('a reading told of fewer wallets than were asked for')
  return one
}
