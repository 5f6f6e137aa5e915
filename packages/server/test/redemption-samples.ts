import { sql } from '../src/platform/db/db.ts'
import type { World } from './world.ts'

let serial = 0

/** A payment that can be redeemed now, by its credential, two with open redemptions, and one that can be refunded. */
export async function makeRedemptions({ call, database }: World, key: string, payment: object) {
  const made = [0, 1, 2, 3].map(() => ({
    ...payment,
    method: 'GET',
    reportsDelivery: true,
    credential: stubNumber(++serial),
  }))
  const ids: string[] = []
  for (const body of made) ids.push(String((await call(key, 'POST', '/payments/verify', body)).body.paymentId))
  const [redeemable = '', redeeming = '', unserved = '', refundable = ''] = ids
  // Their grace periods are over.
  await database.db.run(
    sql`update payments set redemption_until = now() - interval '1 second' where id = any(${ids}::text[])`,
  )
  await database.db.run(sql`update payments set redemption_token = 'redeeming' where id in (${redeeming}, ${unserved})`)
  const payer = '0x1111111111111111111111111111111111111111'
  await database.db.run(sql`update payments set payer = ${payer}, delivery = null where id = ${refundable}`)
  return { redeemable: made[ids.indexOf(redeemable)]?.credential ?? '', redeeming, unserved, refundable }
}

function stubNumber(serial: number): string {
  return `stub_payment_sample_${serial}`
}
