import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aVaultStage, type VaultStage } from './vaults-stage.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

const Kept = z.object({ bytes: z.number() })

test.each([1e308, 5e-324, -1.7976931348623157e308])(
  'metadata full of %d takes no more space in the database, and in a list, than metadata of digits may',
  async (number) => {
    const org = await stage.world.organisation()
    const most = Math.floor(16_000 / (String(number).length + 1))
    for (const count of [1, 20, most]) {
      await stage.call(org, 'POST', '/vaults', { metadata: { numbers: new Array(count).fill(number) } })
    }
    const kept = await stage.world.database.db.many(
      Kept,
      sql`select octet_length(metadata::text) as bytes from vaults where organisation_id = ${org.id} order by 1`,
    )
    // Twenty-one such numbers are well within the limit and are accepted.
    expect(kept.length).toBe(2)
    for (const { bytes } of kept) expect(bytes).toBeLessThan(2 * 16_384)
  },
)
