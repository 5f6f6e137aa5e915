import { createHash } from 'node:crypto'

const { SIM_SEED, SIM_SEEDS, SIM_FIRST } = process.env
const only = SIM_SEED === undefined ? undefined : Number(SIM_SEED)

/** What one seed decides. `history` is a hash of all that happened in it. */
interface Simulated<Done> {
  run(): Promise<Done>
  readonly history: string
}

/**
 * Runs the history of each seed and prints the sums of what they did. `SIM_SEED` repeats one, `SIM_SEEDS` runs so many, from `SIM_FIRST` on; without
 * them `usual` are run. Prints a hash of all histories, which is the same whenever the same seeds run. Throws what a seed found, with its number.
 * Returns the `needed` counts that are 0 although all usual seeds ran; one seed, or a few, may do nothing.
 */
export async function runSeeds<Done extends { readonly [name in keyof Done]: number }>(
  { usual, needed }: { readonly usual: number; readonly needed: readonly (keyof Done & string)[] },
  begin: (seed: number) => Simulated<Done>,
): Promise<readonly string[]> {
  const started = performance.now()
  const first = only ?? Number(SIM_FIRST ?? 1)
  const count = only === undefined ? Number(SIM_SEEDS ?? usual) : 1
  const sums = new Map<string, number>()
  const histories = createHash('sha256')
  let done = 0
  for (let seed = first; seed < first + count; seed += 1) {
    const simulation = begin(seed)
    const one = await simulation.run().catch((error: unknown) => {
      const message = error instanceof Error ? error.message : error
      throw new Error(`seed ${seed} (SIM_SEED=${seed} repeats it), history ${simulation.history}: ${message}`, {
        cause: error,
      })
    })
    for (const [name, value] of Object.entries<number>(one)) sums.set(name, (sums.get(name) ?? 0) + value)
    histories.update(simulation.history)
    done += 1
  }
  const seconds = ((performance.now() - started) / 1_000).toFixed(0)
  const counts = [...sums].map(([name, sum]) => `${sum} ${name}`).join(', ')
  console.log(`${done} seeds in ${seconds} s: ${counts}, history ${histories.digest('hex').slice(0, 16)}`)
  const areUsual = first === 1 && count >= usual
  return needed.filter((name) => areUsual && !sums.get(name))
}
