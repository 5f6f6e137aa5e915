import { readFileSync, writeFileSync } from 'node:fs'
import solc from 'solc'

const contracts = [
  { source: 'SandboxBridge.sol', name: 'SandboxBridge' },
  { source: 'SandboxPool.sol', name: 'SandboxPool' },
  { source: 'TestGasPriceOracle.sol', name: 'TestGasPriceOracle' },
  { source: 'TestLifiDiamond.sol', name: 'TestLifiDiamond' },
  { source: 'TestRelayDepository.sol', name: 'TestRelayDepository' },
  { source: 'TestSanctionsList.sol', name: 'TestSanctionsList' },
  { source: 'TestPermit2Proxy.sol', name: 'TestExactPermit2Proxy' },
  { source: 'TestPermit2Proxy.sol', name: 'TestUptoPermit2Proxy' },
  { source: 'TestUsdc.sol', name: 'TestUsdc' },
  { source: 'TestWallet.sol', name: 'TestWallet' },
  { source: 'TestWallet.sol', name: 'TestWalletFactory' },
  { source: 'TestZeroFirstUsdc.sol', name: 'TestZeroFirstUsdc' },
]

type Slot = { label: string; slot: string }

const here = (file: string) => new URL(file, import.meta.url)
const read = (source: string) => readFileSync(here(`../contracts/${source}`), 'utf8')

const input = {
  language: 'Solidity',
  sources: Object.fromEntries(contracts.map(({ source }) => [source, { content: read(source) }])),
  settings: {
    evmVersion: 'cancun',
    viaIR: true,
    optimizer: { enabled: true, runs: 10_000 },
    metadata: { bytecodeHash: 'none', appendCBOR: false },
    outputSelection: { '*': { '*': ['abi', 'evm.deployedBytecode.object', 'storageLayout'] } },
  },
}

const output = JSON.parse(solc.compile(JSON.stringify(input)))
for (const { formattedMessage } of output.errors ?? []) console.error(formattedMessage)
if (output.errors?.some(({ severity }: { severity: string }) => severity === 'error')) process.exit(1)

for (const { source, name } of contracts) {
  const { abi, evm, storageLayout } = output.contracts[source][name]
  const slots = Object.fromEntries(storageLayout.storage.map(({ label, slot }: Slot) => [label, Number(slot)]))
  const artifact = { abi, deployedBytecode: `0x${evm.deployedBytecode.object}`, slots }
  writeFileSync(here(`./artifacts/${name}.json`), `${JSON.stringify(artifact, null, 2)}\n`)
  console.log(`${name}: ${evm.deployedBytecode.object.length / 2} bytes`)
}
