import path from 'node:path'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** The address of the API for `npm run dev`. */
const api = process.env.PURSER_BASE_URL ?? 'http://localhost:4100'
const apiPaths = [
  'account',
  'auth',
  'billing',
  'events',
  'organisations',
  'payments',
  'registry',
  'sessions',
  'test',
  'vaults',
  'wallet-infra',
  'wallets',
  'webhooks',
]

/** The modules of the first page: the start, and home, where most people begin. */
const firstModules = ['src/main.tsx', 'src/pages/home/home-page.tsx'].map((file) =>
  path.join(import.meta.dirname, file),
)

/** Makes the elements of JSX, with the text in them visible (decision 0212). */
const visibleText = path.join(import.meta.dirname, 'src/ui/visible-text.ts')

/** Names all modules of the protocol, of which a page needs one or two: the bundler follows each name to its module. */
const protocolIndex = path.join(import.meta.dirname, '../protocol/src/index.ts')

interface ModuleGraph {
  getModuleInfo(id: string): { importedIds: readonly string[] } | null
}

/** `first` for each module that the first page needs: sixty small files are sixty requests, and larger when compressed. */
function firstLoad(id: string, graph: ModuleGraph): string | null {
  const add = (one: string) => {
    if (one === protocolIndex || first.has(one)) return
    first.add(one)
    graph.getModuleInfo(one)?.importedIds.forEach(add)
  }
  if (first.size === 0) firstModules.forEach(add)
  return first.has(id) ? 'first' : null
}
const first = new Set<string>()

export default defineConfig({
  root: import.meta.dirname,
  base: '/dashboard/',
  plugins: [react({ jsxImportSource: 'visible-text' }), tailwindcss()],
  // Only this package's React is bundled: the workspace also installs an older one for the tests of another package.
  resolve: {
    dedupe: ['react', 'react-dom'],
    alias: [{ find: /^visible-text\/jsx-(?:dev-)?runtime$/, replacement: visibleText }],
  },
  server: { proxy: Object.fromEntries(apiPaths.map((path) => [`/${path}`, { target: api }])) },
  build: {
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: 'licenses.txt' },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: firstLoad, debugName: 'first' }] } } },
  },
})
