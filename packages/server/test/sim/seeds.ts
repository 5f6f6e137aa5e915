const { SIM_SEED, SIM_SEEDS, SIM_FIRST } = process.env
const only = SIM_SEED === undefined ? undefined : Number(SIM_SEED)

/**
 * Runs the history of each seed and returns the sums of what they did. `SIM_SEED` repeats one, `SIM_SEEDS` runs so many, from `SIM_FIRST` on; without
 * them `usual` are run. Throws what a seed found, with its number.
 */
export async function runSeeds<Done extends { readonly [name in keyof Done]: number }>(
  usual: number,
  run: (seed: number) => Promise<Done>,
): Promise<{ readonly [name in keyof Done]: number }> {
  const started = performance.now()
  const first = only ?? Number(SIM_FIRST ?? 1)
  const count = only === undefined ? Number(SIM_SEEDS ?? usual) : 1
  const sums = new Map<string, number>()
  let done = 0
  for (let seed = first; seed < first + count; seed += 1) {
    const one = await run(seed).catch((error: unknown) => {
      const message = error instanceof Error ? error.message : error
      throw new Error(`seed ${seed} (SIM_SEED=${seed} repeats it): ${message}`, { cause: error })
    })
    for (const [name, value] of Object.entries<number>(one)) sums.set(name, (sums.get(name) ?? 0) + value)
    done += 1
  }
  const seconds = ((performance.now() - started) / 1_000).toFixed(0)
  console.log(`${done} seeds in ${seconds} s: ${[...sums].map(([name, sum]) => `${sum} ${name}`).join(', ')}`)
  return Object.fromEntries(sums) as { readonly [name in keyof Done]: number }
}
