interface InBlock {
  readonly block: bigint
}

/** Rows in whole blocks, and whether more rows follow. */
export interface WholeBlocks<R> {
  readonly rows: readonly R[]
  readonly isPart: boolean
}

/** Reads up to `pageMax` rows in the order of their blocks, in whole blocks; more only if the first block has more. */
export async function wholeBlocks<R extends InBlock>(
  pageMax: number,
  read: (most: number) => Promise<readonly R[]>,
): Promise<WholeBlocks<R>> {
  for (let most = pageMax; ; most *= 2) {
    const rows = await read(most + 1)
    if (rows.length <= most) return { rows, isPart: false }
    const last = rows.at(-1)?.block
    const whole = rows.filter(({ block }) => block !== last)
    if (whole.length > 0) return { rows: whole, isPart: true }
  }
}
