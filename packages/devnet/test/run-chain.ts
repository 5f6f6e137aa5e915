import { startChain } from '../src/index.ts'

// A launcher to be killed: starts a chain on a state file and prints its address.
const [stateFile = ''] = process.argv.slice(2)
const chain = await startChain({ network: 'base-sepolia', stateFile })
process.stdout.write(JSON.stringify(chain))
