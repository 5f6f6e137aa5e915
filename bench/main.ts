import os from 'node:os'
import { benchChallenge, fullChallenge, quickChallenge } from './challenge.ts'
import { createClosing } from './closing.ts'
import { benchMpp, fullMpp, quickMpp } from './mpp.ts'
import { benchSettle, fullSettle, quickSettle } from './settle.ts'
import { benchVerify, fullVerify, quickVerify } from './verify.ts'

const args = process.argv.slice(2)
const quick = args.includes('--quick')
const blockGas = args.flatMap((arg) => /^--block-gas=(\d{1,12})$/.exec(arg)?.[1] ?? [])[0]
const closing = createClosing()
const benches = {
  challenge: () => benchChallenge(quick ? quickChallenge : fullChallenge, closing),
  mpp: () => benchMpp(quick ? quickMpp : fullMpp, closing),
  verify: () => benchVerify(quick ? quickVerify : fullVerify, closing),
  settle: () =>
    benchSettle(quick ? quickSettle : fullSettle, closing, blockGas === undefined ? undefined : Number(blockGas)),
}

const wanted = args.find((arg) => !arg.startsWith('--'))
if (wanted !== 'verify' && wanted !== 'settle' && wanted !== 'challenge' && wanted !== 'mpp') {
  console.error('Say which: npm run bench -- verify|settle|challenge|mpp [--quick] [--block-gas=<gas>]')
  process.exit(2)
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => closing.all().finally(() => process.exit(130)))
}

const runMsMax = 300_000
setTimeout(() => {
  console.error(`not done after ${runMsMax / 1_000} s; giving up`)
  closing.all().finally(() => process.exit(1))
}, runMsMax).unref()

process.exit(await run(benches[wanted]))

/** Answers the exit code: 0 only if every request was answered rightly and no payment was lost. */
async function run(bench: () => Promise<number>): Promise<number> {
  console.log(
    `${os.cpus().length} x ${os.cpus()[0]?.model}, Node ${process.version}; everything, the load generator too, on this machine`,
  )
  try {
    const wrong = await bench()
    if (wrong > 0) console.log(`\n${wrong} answers were wrong or payments lost`)
    return wrong > 0 ? 1 : 0
  } catch (error) {
    console.error(error)
    return 1
  } finally {
    await closing.all()
  }
}
