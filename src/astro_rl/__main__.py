from astro_rl.cli.main import main

raise SystemExit(main())
