import type { Screened, Screening } from '../src/partners/screening/port.ts'

export interface FakeScreening extends Screening {
  addressesMax: number
  /** Sets the result for an address. All others are clean. */
  setResult(address: string, screened: Screened): void
  /** Replaces the list; these addresses changed. */
  swapList(changed: readonly string[]): void
  /** Whether the list is too old to clear an address. */
  isStale: boolean
  /** Called in every screening, after the sources were queried and before the result is returned. */
  between: () => Promise<void>
  /** Screened addresses, in order. */
  readonly requested: readonly string[]
}

/** A screening with configurable results, for tests. */
export function createFakeScreening(now: () => Date): FakeScreening {
  const results = new Map<string, Screened>()
  const changes: (readonly string[])[] = []
  const requested: string[] = []
  const version = (): bigint => BigInt(changes.length + 1)
  const clean: Screened = { result: 'clear', reason: 'clean', oracle: 'clean' }
  const fake: FakeScreening = {
    addressesMax: 100,
    requested,
    isStale: false,
    between: () => Promise.resolve(),
    setResult: (address, screened) => void results.set(address.toLowerCase(), screened),
    swapList: (changed) => void changes.push(changed),
    async screen(addresses) {
      requested.push(...addresses)
      const listVersion = version()
      const answers = new Map(addresses.map((one) => [one.toLowerCase(), results.get(one.toLowerCase()) ?? clean]))
      await fake.between()
      const of = (address: string): Screened => answers.get(address.toLowerCase()) ?? clean
      return { listVersion, listAsOf: now(), oracleNetworks: ['ethereum'], of }
    },
    isCurrentList: async (_tx, listVersion) => listVersion === version(),
    list: async () => ({
      version: version(),
      source: 'fake',
      listDate: now().toISOString().slice(0, 10),
      asOf: now(),
      addressCount: 1,
      isStale: fake.isStale,
    }),
    difference: async (from, to) => changes.slice(Number(from) - 1, Number(to) - 1).flat(),
    screenNow: (address) => results.get(address.toLowerCase()) ?? clean,
    refreshIfDue: () => Promise.resolve(),
    stop: () => Promise.resolve(),
  }
  return fake
}
