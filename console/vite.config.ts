import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// Addresses are relative, so that the console works below any path. Nothing is inline: the policy forbids it.
export default defineConfig({
  base: './',
  plugins: [react()],
  build: {
    outDir: '../bin/console/dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000,
    reportCompressedSize: false,
  },
})
