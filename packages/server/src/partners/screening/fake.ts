import type { Screened, Screening } from './port.ts'

export interface FakeScreening extends Screening {
  /** What is said of an address from now on; of all others that they are clean. */
  say(address: string, screened: Screened): void
  /** Another list takes the place of the present one; what it changed are these addresses. */
  swapList(changed: readonly string[]): void
  /** Whether the list is too old to clear anybody. */
  isStale: boolean
  /** Called in every asking after the sources were asked and before the answer is given. */
  between: () => Promise<void>
  /** Addresses asked about, in order. */
  readonly asked: readonly string[]
}

/** A screening that says what it is told, for tests of what is done with the answers. */
export function createFakeScreening(now: () => Date): FakeScreening {
  const said = new Map<string, Screened>()
  const changes: (readonly string[])[] = []
  const asked: string[] = []
  const version = (): bigint => BigInt(changes.length + 1)
  const clean: Screened = { result: 'clear', reason: 'clean', oracle: 'clean' }
  const fake: FakeScreening = {
    addressesMax: 100,
    asked,
    isStale: false,
    between: () => Promise.resolve(),
    say: (address, screened) => void said.set(address.toLowerCase(), screened),
    swapList: (changed) => void changes.push(changed),
    async screen(addresses) {
      asked.push(...addresses)
      const listVersion = version()
      const answers = new Map(addresses.map((one) => [one.toLowerCase(), said.get(one.toLowerCase()) ?? clean]))
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
    screenNow: (address) => said.get(address.toLowerCase()) ?? clean,
    refreshIfDue: () => Promise.resolve(),
    stop: () => Promise.resolve(),
  }
  return fake
}
