import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** Where `npm run dev` finds the API. */
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

export default defineConfig({
  root: import.meta.dirname,
  base: '/dashboard/',
  plugins: [react(), tailwindcss()],
  // The workspace has an older React for the tests of another package; the page has one, its own.
  resolve: { dedupe: ['react', 'react-dom'] },
  server: { proxy: Object.fromEntries(apiPaths.map((path) => [`/${path}`, { target: api }])) },
  build: {
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: 'licenses.txt' },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
  },
})
